"""A further set: what was counted on it, and the same as a part of a report."""

from typing import Any, Literal, Protocol, TypeAlias

from howsure.report.findings import DocumentedFinding
from howsure.report.parts import Interval, Part
from howsure.statistics.effective import EffectiveShare
from howsure.statistics.findings.evidence import Finding
from howsure.statistics.model_scores import ConfidenceRow, ModelScores
from howsure.statistics.shift.methods import BestOnSet, MethodOnSet
from howsure.statistics.shift.population import Histogram, PopulationShift
from howsure.statistics.shift.result import ConfidenceCount, MeasureEvaluation, Outcome

# Whether a set is like the traffic to come, or only says how far data may drift.
SetRole: TypeAlias = Literal["traffic", "stress"]


class Counts(Protocol):
    """Samples of a set, and those that a threshold accepts."""

    @property
    def n_samples(self) -> int: ...
    @property
    def n_accepted(self) -> int: ...
    @property
    def n_errors(self) -> int: ...
    @property
    def coverage(self) -> float: ...
    @property
    def effective(self) -> EffectiveShare | None: ...


class DecidedPoint(Protocol):
    """An operating point as it was stored."""

    @property
    def name(self) -> str | None: ...
    @property
    def threshold(self) -> float | None: ...
    @property
    def chosen_by(self) -> dict[str, Any] | None: ...
    @property
    def consequences(self) -> dict[str, Any] | None: ...


class AcceptedCounts(Part, frozen=True, kw_only=True):
    """What a threshold accepts on a set.

    Attributes
    ----------
    target : dict of str to float
        The error rate, share or threshold that it was chosen by.
    threshold : float
        The largest accepted uncertainty.
    operating_point : str, optional
        Its name, if the threshold is that of the active one.
    n_samples, n_accepted, n_errors : int
        All samples, accepted ones, and errors among these.
    coverage : float
        Weighted share of accepted samples.
    effective : EffectiveShare, optional
        Of the errors, with weights or groups.
    """

    target: dict[str, float]
    threshold: float
    operating_point: str | None = None
    n_samples: int
    n_accepted: int
    n_errors: int
    coverage: float
    effective: EffectiveShare | None = None


class AcceptedRate(AcceptedCounts, frozen=True, kw_only=True):
    """What a threshold accepts on a set, with the error rate.

    Attributes
    ----------
    risk, risk_interval : float and tuple of float, optional
        The error rate and its interval; null without an accepted answer.
    """

    risk: float | None
    risk_interval: Interval | None


class CountedEvent(Part, frozen=True, kw_only=True):
    """One event as it was counted on a set."""

    accuracy: float | None
    served: str
    shifted: bool
    outcome: Outcome
    measures: dict[str, MeasureEvaluation]
    effective: EffectiveShare | None = None
    sentence: str = ""
    accepted: list[AcceptedCounts] = []
    unpromised: AcceptedCounts | None = None
    methods: dict[str, MethodOnSet] = {}
    best: BestOnSet | None = None


class CountedEvents(Part, frozen=True, kw_only=True):
    """What decides whether a set disproves a calibration."""

    n_samples: int
    events: dict[str, CountedEvent]
    findings: list[Finding] = []


class CountedSet(CountedEvents, frozen=True, kw_only=True):
    """The result of an evaluation."""

    shifted: bool
    outcome: Outcome
    sentence: str
    model_scores: ModelScores | None
    confidence: Histogram
    entropy: Histogram | None
    above_confidence: list[ConfidenceCount]


class FurtherEvent(Part, frozen=True, kw_only=True):
    """One event on a further set, by the served table.

    Attributes
    ----------
    accuracy : float or None
        Null without labels.
    served : str
        The served measure.
    shifted : bool
        Whether the set differs from the calibration set.
    scores : dict of str to float or None, optional
        Null without labels.
    discarded : dict of str to float
        Share of samples above each out-of-distribution threshold.
    population : PopulationShift
        How the uncertainties differ from those of the calibration set.
    stated : float or None
        Mean probability; null without labels.
    accepted : list of AcceptedRate
        At each tested threshold; empty without labels.
    unpromised : AcceptedRate, optional
        The same at the active operating point, if it was not chosen by an error rate.
    disproves : bool
        Whether clearly more answers are wrong than promised or stated.
    verdict : str
        The outcome in a few words.
    methods : dict of str to MethodOnSet
        What is served, the model's own softmax and each baseline, on the same samples; empty
        without labels.
    best : BestOnSet, optional
        Which of them is best; null without labels.
    best_sentence : str
        The same in words; empty without labels.
    """

    accuracy: float | None
    served: str
    shifted: bool
    scores: dict[str, float | None] | None
    discarded: dict[str, float]
    population: PopulationShift | None
    stated: float | None
    accepted: list[AcceptedRate]
    unpromised: AcceptedRate | None
    disproves: bool
    verdict: str
    methods: dict[str, MethodOnSet] = {}
    best: BestOnSet | None = None
    best_sentence: str = ""


class DescribedSet(Part, frozen=True, kw_only=True):
    """What was sent as a further set.

    Attributes
    ----------
    name : str
        The name it was sent with.
    role : str
        `traffic`, or `stress` of a set that does not change the verdict.
    type, intensity : str and float, optional
        How its samples were changed, and how much.
    labelled : bool
        Whether it has labels.
    finished_at : str or None
        End of its evaluation, in UTC.
    sha256 : str
        Digest of the set.
    none_of_these : int
        Samples whose class is none of the model's; every answer to them is wrong.
    """

    name: str
    role: SetRole = "traffic"
    type: str | None = None
    intensity: float | None = None
    labelled: bool
    finished_at: str | None
    sha256: str
    none_of_these: int = 0


class FurtherSet(DescribedSet, frozen=True, kw_only=True):
    """An evaluated further set; `/evaluations/{name}` has the whole result.

    Attributes
    ----------
    samples : int
        Number of samples.
    shifted : bool
        Whether any event is shifted.
    outcome : str
        `shifted`, `worse`, `miscalibrated`, `better` or `alike`.
    findings : list of DocumentedFinding
        Likely problems of its labels or scores.
    sentence : str
        The result in words.
    events : dict of str to FurtherEvent
        `1` for Top-1.
    confidence, entropy : Histogram, optional
        Of the largest softmax, and of the entropy if it was recorded.
    above_confidence : list of ConfidenceCount
        Count and share of both sets above each confidence.
    by_confidence : list of ConfidenceRow, optional
        Accuracy above each confidence; null without labels.
    """

    samples: int
    shifted: bool
    outcome: Outcome
    findings: list[DocumentedFinding]
    sentence: str
    events: dict[str, FurtherEvent]
    confidence: Histogram
    entropy: Histogram | None
    above_confidence: list[ConfidenceCount]
    by_confidence: list[ConfidenceRow] | None

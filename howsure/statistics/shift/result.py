"""The result of evaluating a calibration on another set."""

from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from howsure.statistics.diagnostics.consistency import ConsistencyBand
from howsure.statistics.effective import EffectiveShare
from howsure.statistics.model_scores import ModelScores
from howsure.statistics.shift.methods import BestOnSet, MethodOnSet
from howsure.statistics.shift.population import Histogram, PopulationShift

# What a set is compared with the calibration set, the most serious first: its uncertainties are
# distributed differently, or its answers are right less often than stated, not as often in either
# direction, or more often; or neither is seen.
Outcome: TypeAlias = Literal["shifted", "worse", "miscalibrated", "better", "alike"]
OUTCOMES: tuple[Outcome, ...] = ("shifted", "worse", "miscalibrated", "better", "alike")


@dataclass(frozen=True, eq=False)
class MeasureEvaluation:
    """One measure of one event on another set, by the unchanged table of the calibration.

    Attributes
    ----------
    measure, column : str
    scores : dict of str to float or None, optional
        Of the table on this set; None without labels.
    stated, right : float, optional
        The mean probability on this set, and the share of hits; None without labels.
    ece_band : ConsistencyBand, optional
        The calibration error on this set and its distribution for a calibrated table; None without
        labels, and with weights or groups.
    ece_p_value : float, optional
        The probability of a calibration error at least as large, if bins have the same
        probabilities on this set as on the calibration set; None as above.
    gap_p_value : float, optional
        The probability that the share of hits differs at least as much from what is expected, under
        the same hypothesis; None without labels.
    discarded : dict of float to float
        Share of the set above the out-of-distribution threshold, by level; in the calibration set
        it is at most ``1 - level``.
    population : PopulationShift
        The uncertainties of the set against those of the calibration set.
    occupancy : tuple of int
        Samples in each bin of the table.
    """

    measure: str
    column: str
    scores: dict[str, float | None] | None
    ece_band: ConsistencyBand | None
    ece_p_value: float | None
    discarded: dict[float, float]
    population: PopulationShift
    occupancy: tuple[int, ...]
    stated: float | None = None
    right: float | None = None
    gap_p_value: float | None = None


@dataclass(frozen=True, eq=False)
class EventEvaluation:
    """One event on another set.

    Attributes
    ----------
    k : int
    accuracy : float or None
        Share of the samples for which the event holds; None without labels.
    served : str
        The measure whose table is served.
    measures : dict of str to MeasureEvaluation
    shifted : bool
        By the served measure: whether its uncertainties are distributed differently from the
        calibration set or, with labels, its calibration error is more than chance explains.
    outcome : Outcome
        Which of the two it is.
    effective : EffectiveShare or None
        The accuracy; None if samples have no labels, or neither weights nor groups.
    methods : dict of str to MethodOnSet
        What is served, the model's own softmax and each baseline; empty without labels.
    best : BestOnSet or None
        None without labels.
    """

    k: int
    accuracy: float | None
    served: str
    measures: dict[str, MeasureEvaluation]
    shifted: bool
    outcome: Outcome
    effective: EffectiveShare | None = None
    methods: dict[str, MethodOnSet] = field(default_factory=dict)
    best: BestOnSet | None = None


@dataclass(frozen=True)
class ConfidenceCount:
    """Samples whose largest softmax probability is at least ``confidence``.

    Attributes
    ----------
    confidence : float
        Inclusive.
    count : int
        Number of these samples.
    share, calibration_share : float
        Of this set, and of the calibration set.
    """

    confidence: float
    count: int
    share: float
    calibration_share: float


@dataclass(frozen=True, eq=False)
class EvaluationResult:
    """The evaluation of another set.

    Attributes
    ----------
    n_samples : int
    labelled : bool
    events : dict of int to EventEvaluation
        By ``k``.
    model_scores : ModelScores or None
        None without labels.
    confidence : Histogram
        Largest softmax probability, from 0 to 1.
    entropy : Histogram or None
        Nats, from 0 to ``log n_classes``; None where it was not recorded.
    above_confidence : tuple of ConfidenceCount
        Ascending.
    shifted : bool
        Whether any event is.
    outcome : Outcome
        The most serious of the events.
    """

    n_samples: int
    labelled: bool
    events: dict[int, EventEvaluation]
    model_scores: ModelScores | None
    confidence: Histogram
    entropy: Histogram | None
    above_confidence: tuple[ConfidenceCount, ...]
    shifted: bool
    outcome: Outcome

"""The report of a calibration: all of its results and their origin, as typed JSON."""

from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

import msgspec

from howsure.report.event import Event
from howsure.report.findings import DocumentedFinding
from howsure.report.further_set import FurtherSet
from howsure.report.parts import Part
from howsure.statistics import operating_point
from howsure.statistics.model_scores import ModelScores

Status: TypeAlias = Literal["fit", "unfit", "warned", "disproved", "shifted", "unknown"]


class Subject(Part, frozen=True, kw_only=True):
    """A calibration: its id, name and version.

    Attributes
    ----------
    id : str
        Of this version, for good.
    name : str
        Shared by the versions.
    version : int
        Counted per name, never reused.
    """

    id: str
    name: str
    version: int


class About(Subject, frozen=True, kw_only=True):
    """The calibration of a report, with its times.

    Attributes
    ----------
    created_at, finished_at : str or None
        When it was accepted, and when it ended, in UTC.
    """

    created_at: str | None
    finished_at: str | None


@dataclass(frozen=True, kw_only=True)
class Consequences(operating_point.Consequences):
    """What the threshold of an operating point accepts, on the calibration set.

    Attributes
    ----------
    further : dict of str to Effect
        The same on each labelled further set that was finished at the activation, by its name.
    activated_despite : list of str
        Why the calibration should not have been used, as known at the activation; empty if nothing
        was known against it.
    """

    further: dict[str, operating_point.Effect] = field(default_factory=dict)
    activated_despite: list[str] = field(default_factory=list)


class ActivePoint(Part, frozen=True, kw_only=True):
    """The active operating point.

    Attributes
    ----------
    name : str
        As answers have it in `abstain`.
    chosen_by : dict of str to float
        The error rate, share or threshold that it was chosen by.
    consequences : Consequences, optional
        Null if the calibration keeps no records.
    author, reason : str
        Who decided, and why.
    threshold : float
        On the scale of the measure.
    created_at : str or None
        In UTC.
    """

    name: str
    chosen_by: dict[str, float]
    consequences: Consequences | None
    author: str
    reason: str
    threshold: float
    created_at: str | None


class EarlierPoint(Part, frozen=True, kw_only=True):
    """The active operating point of an earlier version of the name.

    Attributes
    ----------
    version : int
        The version that has it.
    name, author : str
        Its name, and who decided.
    chosen_by : dict of str to float
        The error rate, share or threshold that it was chosen by.
    """

    version: int
    name: str
    chosen_by: dict[str, float]
    author: str


class Parity(Part, frozen=True, kw_only=True):
    """Differences between the exported file and the service.

    Attributes
    ----------
    samples : int
        Rows of the calibration set that both answered.
    classes, bins : int
        Rows with another class, and with another bin.
    probability : float
        Largest difference of a probability or interval end.
    """

    samples: int
    classes: int
    bins: int
    probability: float


class ExportedFile(Part, frozen=True, kw_only=True):
    """The calibrated model as one file, from `/calibrations/{id}/model.onnx`.

    Attributes
    ----------
    sha256 : str
        Digest of the file.
    size : int
        In bytes.
    created_at : str or None
        In UTC.
    parity : Parity
    """

    sha256: str
    size: int
    created_at: str | None
    parity: Parity


class Provenance(Part, frozen=True, kw_only=True):
    """Digests, counts, configuration and versions.

    Attributes
    ----------
    data : dict
        Counts and digests of the sets.
    model : dict, optional
        Of the ONNX model; null if its outputs were uploaded.
    config : dict
        The whole configuration.
    versions : dict of str to str
        Of the service and the libraries that its numbers depend on.
    refit_of : str or None
        The calibration whose records it was fitted to.
    digest : str or None
        SHA-256 of everything that its answers depend on.
    """

    data: dict[str, Any]
    model: dict[str, Any] | None
    config: dict[str, Any]
    versions: dict[str, str]
    refit_of: str | None
    digest: str | None


class Summary(Part, frozen=True, kw_only=True):
    """Whether the calibration is fit for automatic use.

    Attributes
    ----------
    event : str
        The event that it is about, `1` for Top-1.
    status : str
        `fit`: an error rate passed its test, and the evaluation set does not contradict it;
        `disproved`: it does; `warned`: a finding is a warning; `shifted`: a further set disproves
        it.
    headline : str
        The decision in words.
    sentences : list of str
        Other error rates, calibration, and shift.
    """

    event: str
    status: Status
    headline: str
    sentences: list[str]


class Report(Part, frozen=True, kw_only=True):
    """All results of a calibration and their origin.

    Attributes
    ----------
    calibration : About
    events : dict of str to Event
        By k, `1` for Top-1.
    model_scores : dict of str to ModelScores
        Scores of the model's own softmax, by set.
    operating_point : ActivePoint, optional
    earlier_operating_point : EarlierPoint, optional
        Without an active one: that of the newest earlier version of the name with one.
    export : ExportedFile, optional
        Null until the first request for it.
    evaluations : list of FurtherSet
        Oldest first.
    not_evaluated : list of str
        Labelled further sets that only other versions of the name have.
    warnings : list of str
        In sentences.
    findings : list of DocumentedFinding
        Likely problems.
    provenance : Provenance
    summary : Summary
        Whether it is fit for automatic use, and why.
    """

    calibration: About
    events: dict[str, Event]
    model_scores: dict[str, ModelScores]
    operating_point: ActivePoint | None
    earlier_operating_point: EarlierPoint | None
    export: ExportedFile | None
    evaluations: list[FurtherSet]
    not_evaluated: list[str] = []
    warnings: list[str]
    findings: list[DocumentedFinding]
    provenance: Provenance
    summary: Summary | None = None

    def json(self) -> bytes:
        """Return the JSON of ``GET /report``."""
        return msgspec.json.encode(self)

    def _repr_html_(self) -> str:
        """Return its summary and pictures, for notebooks."""
        from howsure.figures.notebook import notebook_html  # noqa: PLC0415 - they draw reports

        return notebook_html(self)

    @property
    def traffic(self) -> list[FurtherSet]:
        """The further sets that the verdict follows."""
        return [one for one in self.evaluations if one.role == "traffic"]

    @property
    def reference(self) -> str:
        """The name and the version of the calibration."""
        return f"{self.calibration.name}@{self.calibration.version}"

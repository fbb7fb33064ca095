"""Parts of the bins document: all tables of a calibration, and what else its answers depend on.

Classes of the statistics are parts of it as they are.
"""

import uuid
from typing import Annotated, Literal, TypeAlias

from msgspec import Meta, Struct

from howsure.bins_document.pass_plan import PassPlan
from howsure.limits import MAX_BINS, MAX_NAME_LENGTH, MOST_TEXTS, NAME_PATTERN
from howsure.preprocessing import Preprocessing
from howsure.statistics.bins.curve import MAX_KNOTS
from howsure.statistics.bins.intervals import IntervalOptions
from howsure.statistics.bins.lookup import Lookup
from howsure.statistics.bins.prior import BetaPrior
from howsure.statistics.input_ranges import MOST_COLUMNS
from howsure.statistics.learned.model import N_INPUTS
from howsure.statistics.records.records import USUAL
from howsure.statistics.softmax import MOST_COMPLETE

SchemaName: TypeAlias = Literal["howsure.bins/1", "howsure.bins/2"]

MAX_TABLES = 5_000
MAX_COUNT = 2**63 - 1
MAX_INPUTS = 1_000

Digest: TypeAlias = Annotated[str, Meta(pattern=r"^[0-9a-f]{64}$")]
Count: TypeAlias = Annotated[int, Meta(ge=0, le=MAX_COUNT)]
Positive: TypeAlias = Annotated[int, Meta(ge=1)]
Rate: TypeAlias = Annotated[float, Meta(ge=0, le=1)]
Inside: TypeAlias = Annotated[float, Meta(gt=0, lt=1)]  # of the ends of [0, 1]
Text: TypeAlias = Annotated[str, Meta(min_length=1, max_length=MAX_NAME_LENGTH)]
Knots: TypeAlias = Annotated[list[float], Meta(max_length=MAX_KNOTS)]
Four: TypeAlias = Annotated[list[float], Meta(min_length=N_INPUTS, max_length=N_INPUTS)]
Columns: TypeAlias = Annotated[list[float], Meta(min_length=1, max_length=MOST_COLUMNS)]
Matrix: TypeAlias = Annotated[list[list[float]], Meta(max_length=MOST_COMPLETE)]


class Part(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A part that has all of its keys."""


class SparsePart(Part, frozen=True, kw_only=True, omit_defaults=True):
    """A part without keys that older documents lack: their digests must stay valid."""


class Origin(Part, frozen=True, kw_only=True):
    """The calibration of the tables; no answer depends on it.

    Attributes
    ----------
    id : UUID, optional
        Its id on the service that made it.
    name : str
        The name of an import unless another one is given.
    version : int, optional
        Version of that name.
    """

    id: uuid.UUID | None = None
    name: Annotated[str, Meta(pattern=NAME_PATTERN)]
    version: int | None = None


class ReadOutput(Part, frozen=True, kw_only=True):
    """How class scores are read from one ONNX file.

    Attributes
    ----------
    name : str
        The chosen output.
    kind : str
        Content of the tensor.
    tensor : str
        The tensor read for that output.
    positive_column : int or None
        Column of the positive class, of a binary model with one score.
    raw : bool
        Whether the model's own softmax is bypassed.
    precision : str
        Precision of the uncertainties.
    """

    name: str
    kind: Literal["logits", "probabilities"]
    tensor: str
    positive_column: int | None
    raw: bool
    precision: Literal["float32", "float64"]


class ModelRun(SparsePart, frozen=True, kw_only=True):
    """Options of running the ONNX model.

    Attributes
    ----------
    members : list of str
        SHA-256 of an ensemble's further members.
    companions : dict of str to str
        SHA-256 of each file with external weights, by its name.
    outputs : list of ReadOutput
        Output of the class scores, one entry per member.
    averaged : bool
        Whether the prediction is a mean, of members or passes.
    passes : list of PassPlan
        Plans of the served measures that run the model several times.
    preprocessing : Preprocessing, optional
        Preprocessing of pictures; omitted if there is none.
    """

    members: list[Digest]
    companions: dict[str, Digest]
    outputs: Annotated[list[ReadOutput], Meta(min_length=1)]
    averaged: bool
    passes: list[PassPlan]
    preprocessing: Preprocessing | None = None


class NumbersOfInput(Part, frozen=True, kw_only=True):
    """The numbers of an input of the model in the calibration set.

    Attributes
    ----------
    least, most : float
        The least and the largest number.
    least_spread : float
        Least difference between the largest and least number of one row.
    """

    least: float
    most: float
    least_spread: Annotated[float, Meta(ge=0)]

    def __post_init__(self) -> None:
        if not self.least < self.most:
            raise ValueError("most must be above least")


class NumbersOfColumns(SparsePart, frozen=True, kw_only=True):
    """The numbers of each column of an input in the calibration set, in the order of columns.

    Attributes
    ----------
    least, most : list of float
        The least and the largest number of each column.
    missing : list of float, optional
        Share of rows without a value in each column; omitted if all have one.
    """

    least: Columns
    most: Columns
    missing: Annotated[list[Rate], Meta(max_length=MOST_COLUMNS)] = []

    def __post_init__(self) -> None:
        if len(self.least) != len(self.most) or len(self.missing) not in (0, len(self.least)):
            raise ValueError("least, most and missing must have a number for each column")
        if any(least > most for least, most in zip(self.least, self.most, strict=True)):
            raise ValueError("most must not be below least")


class Data(SparsePart, frozen=True, kw_only=True):
    """The calibration set.

    Attributes
    ----------
    samples : int
        Number of samples.
    kind : str
        Content of the set.
    score_range : tuple of float, optional
        Smallest and largest score, of pairs; otherwise omitted.
    texts : dict of str to list of str, optional
        The few texts of each column that is not read; omitted if there are none.
    input_ranges : dict of str to NumbersOfInput, optional
        By input of the model; omitted if unknown.
    column_ranges : dict of str to NumbersOfColumns, optional
        By input; omitted for inputs that are no table of features.
    """

    samples: Annotated[int, Meta(ge=1, le=MAX_COUNT)]
    kind: Literal["inputs", "logits", "probabilities", "pairs"]
    score_range: tuple[float, float] | None = None
    texts: Annotated[
        dict[Text, Annotated[list[Text], Meta(max_length=MOST_TEXTS)]], Meta(max_length=MAX_INPUTS)
    ] = {}
    input_ranges: Annotated[dict[str, NumbersOfInput], Meta(max_length=MAX_INPUTS)] = {}
    column_ranges: Annotated[dict[str, NumbersOfColumns], Meta(max_length=MAX_INPUTS)] = {}


class OutOfDistribution(Part, frozen=True, kw_only=True):
    """Out-of-distribution flag, by the measure that serves Top-1.

    Attributes
    ----------
    level : float
        Share of the calibration set that is not flagged.
    threshold : float or None
        Samples above it are flagged; null if Top-1 was not calibrated. A float32.
    """

    level: Inside
    threshold: float | None


class Selective(Part, frozen=True, kw_only=True):
    """Accepted samples at a risk, by the measure that serves Top-1.

    Attributes
    ----------
    max_risk : float
        Error rate among accepted samples.
    delta : float
        Probability that the bound fails.
    threshold : float or None
        Samples up to it are accepted; null if no threshold meets the risk. A float32.
    coverage : float or None
        Accepted share of the calibration set.
    n_accepted : int
        Accepted samples of the calibration set.
    n_errors : int
        Accepted samples for which the event does not hold.
    labels_missing : int or None
        Approximate number of further labels needed for a threshold.
    """

    max_risk: Inside
    delta: Inside
    threshold: float | None
    coverage: Rate | None
    n_accepted: Count
    n_errors: Count
    labels_missing: Count | None


class Bin(Part, frozen=True, kw_only=True):
    """Samples with an uncertainty in (lower, upper].

    Attributes
    ----------
    lower, upper : float or None
        Null: no limit. A float32, exactly.
    count : int
        Number of calibration samples.
    hits : int
        Samples for which the event holds.
    weight : float
        Share of the calibration samples. It follows from others; optional in an import.
    probability : float
        The served probability: hits / count, regularised.
    interval : tuple of float
        Of the probability.
    mean_uncertainty : float or None
        Mean of its samples; null without any.
    odds_ratio : float or None
        Its odds relative to those of the whole set; null if they overflow. It follows from others;
        optional in an import.
    """

    lower: float | None
    upper: float | None
    count: Count
    hits: Count
    weight: float | None = None
    probability: Inside
    interval: tuple[Rate, Rate]
    mean_uncertainty: float | None
    odds_ratio: float | None = None


class CurveKnots(Part, frozen=True, kw_only=True):
    """The curve of a smooth lookup: linear between its knots, constant beyond the outer two.

    Attributes
    ----------
    uncertainty : list of float
        Ascending; each is a float32, exactly.
    probability, lower, upper : list of float
        The probability at each knot, and the ends of its interval.
    """

    uncertainty: Annotated[Knots, Meta(min_length=1)]
    probability: Knots
    lower: Knots
    upper: Knots


class LearnedFormula(Part, frozen=True, kw_only=True):
    """The formula of the measure `learned` of earlier versions: docs/statistics.md.

    Attributes
    ----------
    k : int
        The event.
    temperature : int
        Index in the grid.
    intercept, saturated : float
        Constants, the second one where all other classes have no mass.
    linear, square : list of float
        Coefficients of the inputs and of their squares.
    lower, upper : list of float
        Least and largest input in the calibration set.
    offset, slope : list of float
        By predicted class; the slope is of the first input.
    second : list of float
        By second class.
    """

    k: Positive
    temperature: Annotated[int, Meta(ge=0, lt=USUAL)]
    intercept: float
    saturated: float
    linear: Four
    square: Four
    lower: Four
    upper: Four
    offset: list[float]
    slope: list[float]
    second: list[float]


class LabelFormula(Part, frozen=True, kw_only=True):
    """The model of the labels, which the measure `learned` is computed by: docs/statistics.md.

    Attributes
    ----------
    n_recorded : int
        Number m of top classes that it reads.
    temperature : float
        T of the model's own probabilities.
    floor : float
        Added to each of them.
    offset, slope : list of float
        By class; the slope is of the class's own log-probability.
    mixing : list of list of float
        Of all log-probabilities, by class of the input and then by class; empty if not used.
    confusion : list of list of float
        By predicted class and then by class; empty if not used.
    """

    n_recorded: Annotated[int, Meta(ge=2)]
    temperature: float
    floor: Rate
    offset: list[float]
    slope: list[float]
    mixing: Matrix
    confusion: Matrix


class Table(SparsePart, frozen=True, kw_only=True):
    """The bins of one measure for one event.

    Attributes
    ----------
    event : int
        k of Top-k.
    measure : str
        The uncertainty measure.
    served : bool
        Whether this table serves the event.
    lookup : str
        Lookup between edges.
    monotone : bool
        Whether bins were pooled until the probability falls.
    requested_bins : int
        Requested number of bins, or that chosen by `auto`.
    quantile_bins : int
        Bins before pooling; ties make fewer than requested.
    interval : IntervalOptions
        Options of the intervals.
    prior : BetaPrior
        Prior of its probabilities.
    bins : list of Bin
        From the most certain to the least.
    curve : CurveKnots, optional
        Of a smooth lookup; otherwise omitted.
    learned : LearnedFormula, optional
        Of the measure `learned` of earlier versions; otherwise omitted.
    label_model : LabelFormula, optional
        Of the measure `learned`; otherwise omitted.
    effective_counts : list of float, optional
        Effective samples by bin, of a set with weights or groups; otherwise omitted. No answer
        depends on them.
    """

    event: Positive
    measure: str
    served: bool
    lookup: Lookup
    monotone: bool
    requested_bins: Annotated[int, Meta(ge=1, le=MAX_BINS)]
    quantile_bins: Annotated[int, Meta(ge=1, le=MAX_BINS)]
    interval: IntervalOptions
    prior: BetaPrior
    bins: Annotated[list[Bin], Meta(min_length=1, max_length=MAX_BINS)]
    curve: CurveKnots | None = None
    learned: LearnedFormula | None = None
    label_model: LabelFormula | None = None
    effective_counts: (
        Annotated[list[Annotated[float, Meta(gt=0)]], Meta(max_length=MAX_BINS)] | None
    ) = None

    @property
    def has_further_parts(self) -> bool:
        """Whether it needs the second schema."""
        parts = (self.curve, self.learned, self.label_model, self.effective_counts)
        return any(part is not None for part in parts)


class BinsDocument(SparsePart, frozen=True, kw_only=True):
    """All bin tables of a calibration and everything else that its answers depend on.

    Attributes
    ----------
    schema : str
        Schema of this document and its version.
    content_sha256 : str
        SHA-256 of the content, independent of how the JSON is written.
    calibration : Origin
        The calibration of the tables.
    model_sha256 : str or None
        SHA-256 of the ONNX file, an ensemble's first; null if outputs were calibrated.
    model : ModelRun or None
        Options of running the model; null without one.
    data_sha256 : str
        SHA-256 of the calibration set.
    data : Data
        The calibration set.
    classes : list of str
        Names of the classes, by index.
    top_k : list of int
        The events, by ascending k.
    decision_threshold : float, optional
        Of two classes, as in the configuration; omitted if none was set.
    serve : dict of str to str
        The served measure, by event.
    out_of_distribution : OutOfDistribution
        Out-of-distribution flag.
    selective : list of Selective
        Risk targets of `abstain`.
    tables : list of Table
        One for each event and measure.
    """

    schema: SchemaName
    content_sha256: Digest = "0" * 64
    calibration: Origin
    model_sha256: Digest | None
    model: ModelRun | None
    data_sha256: Digest
    data: Data
    classes: Annotated[list[Text], Meta(min_length=2)]
    top_k: Annotated[list[Positive], Meta(min_length=1, max_length=20)]
    decision_threshold: Inside | None = None
    serve: dict[str, str]
    out_of_distribution: OutOfDistribution
    selective: Annotated[list[Selective], Meta(max_length=20)]
    tables: Annotated[list[Table], Meta(min_length=1, max_length=MAX_TABLES)]


def schema_of(tables: list[Table]) -> SchemaName:
    """Return the schema of a document of these tables."""
    is_second = any(table.has_further_parts for table in tables)
    return "howsure.bins/2" if is_second else "howsure.bins/1"

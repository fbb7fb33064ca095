"""The bins document: all tables of a calibration, and what else its answers depend on."""

import uuid
from typing import Annotated, Literal, TypeAlias

from msgspec import Meta

from howsure.bins_document.parts import (
    MAX_COUNT,
    Count,
    Digest,
    Inside,
    Part,
    Positive,
    Rate,
    Risk,
    SparsePart,
    Text,
)
from howsure.bins_document.pass_plan import PassPlan
from howsure.bins_document.table import Table
from howsure.limits import MOST_TEXTS, NAME_PATTERN
from howsure.preprocessing import Preprocessing
from howsure.statistics.input_ranges import MOST_COLUMNS

SchemaName: TypeAlias = Literal["howsure.bins/1", "howsure.bins/2"]

MAX_TABLES = 5_000
MAX_INPUTS = 1_000

Columns: TypeAlias = Annotated[list[float], Meta(min_length=1, max_length=MOST_COLUMNS)]


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

    max_risk: Risk
    delta: Risk
    threshold: float | None
    coverage: Rate | None
    n_accepted: Count
    n_errors: Count
    labels_missing: Count | None


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
    content_sha256: Digest
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

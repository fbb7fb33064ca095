"""Schema of the bins document: all tables of a calibration and everything its answers depend on.

It is written by ``GET /calibrations/{id}/bins`` and read by ``POST /calibrations/import``.
"""

import uuid
from collections.abc import Sequence
from typing import Annotated, Any, Final, Literal

import numpy as np
from pydantic import (
    AfterValidator,
    FailFast,
    Field,
    PlainSerializer,
)

from howsure.statistics.bins.curve import MAX_KNOTS, Curve
from howsure.statistics.bins.document import BinColumns, Column
from howsure.statistics.bins.lookup import Lookup
from howsure.statistics.label_model.recorded import Formula, formula_of
from howsure.statistics.learned.model import N_INPUTS
from howsure.statistics.records.records import USUAL
from howsure.statistics.softmax import MOST_COMPLETE
from service.bins.set_schemas import MAX_COUNT, Data, Part, is_absent
from service.calibrations.config import Name
from service.calibrations.fit_config import (
    MAX_BINS,
    IntervalConfig,
    MeasureName,
    OodConfig,
    SelectiveConfig,
)
from service.calibrations.preprocessing_config import PreprocessingConfig
from service.graph.description import Kind, Precision
from service.runner.messages.convert import to_json
from service.runner.messages.passes import read_pass_plans

# Documents of smooth tables, learned measures or weighted sets have the second schema.
SCHEMAS: Final = ("howsure.bins/1", "howsure.bins/2")
FURTHER_PARTS: Final = ("curve", "learned", "label_model", "effective_counts")
MAX_TABLES = 5_000

Digest = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
Count = Annotated[int, Field(ge=0, le=MAX_COUNT)]


def _plain_plans(plans: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the plans with numbers of the proper type, whatever JSON made of them."""
    return [to_json(plan) for plan in read_pass_plans(plans)]


Plans = Annotated[list[dict[str, Any]], AfterValidator(_plain_plans)]


class Origin(Part):
    """The calibration of the tables; no answer depends on it."""

    id: uuid.UUID | None = Field(None, description="Its id on the service that made it.")
    name: Name = Field(description="The name of an import unless another one is given.")
    version: int | None = Field(None, description="Version of that name.")


class ReadOutput(Part):
    """How class scores are read from one ONNX file."""

    name: str = Field(description="The chosen output.")
    kind: Kind = Field(description="Content of the tensor.")
    tensor: str = Field(description="The tensor read for that output.")
    positive_column: int | None = Field(
        description="Column of the positive class, of a binary model with one score."
    )
    raw: bool = Field(description="Whether the model's own softmax is bypassed.")
    precision: Precision = Field(description="Precision of the uncertainties.")


class ModelRun(Part):
    """Options of running the ONNX model."""

    members: list[Digest] = Field(description="SHA-256 of an ensemble's further members.")
    companions: dict[str, Digest] = Field(
        description="SHA-256 of each file with external weights, by its name."
    )
    outputs: list[ReadOutput] = Field(
        min_length=1, description="Output of the class scores, one entry per member."
    )
    averaged: bool = Field(description="Whether the prediction is a mean, of members or passes.")
    passes: Plans = Field(
        description="Plans of the served measures that run the model several times."
    )
    preprocessing: (
        Annotated[PreprocessingConfig, PlainSerializer(lambda found: found.resolved().as_dict())]
        | None
    ) = Field(
        None,
        exclude_if=is_absent,
        description="Preprocessing of pictures; omitted if there is none.",
    )


class OutOfDistribution(OodConfig, Part):
    """Out-of-distribution flag, by the measure that serves Top-1."""

    threshold: float | None = Field(
        description="Samples above it are flagged; null if Top-1 was not calibrated. A float32."
    )


class Selective(SelectiveConfig, Part):
    """Accepted samples at a risk, by the measure that serves Top-1."""

    threshold: float | None = Field(
        description="Samples up to it are accepted; null if no threshold meets the risk. A float32."
    )
    coverage: Annotated[float, Field(ge=0, le=1)] | None = Field(
        description="Accepted share of the calibration set."
    )
    n_accepted: Count = Field(description="Accepted samples of the calibration set.")
    n_errors: Count = Field(description="Accepted samples for which the event does not hold.")
    labels_missing: Count | None = Field(
        description="Approximate number of further labels needed for a threshold."
    )


class Prior(Part):
    """The prior that regularises each bin's hit rate."""

    accuracy: float = Field(gt=0, lt=1, description="Its mean.")
    strength: float = Field(gt=0, le=1e6, description="Its weight in pseudo-samples.")
    degenerate: bool = Field(
        description="Whether the event always or never happened, and the mean is a stand-in."
    )


class Bin(Part):
    """Samples with an uncertainty in (lower, upper]."""

    lower: float | None = Field(description="Null: no limit. A float32, exactly.")
    upper: float | None = Field(description="Null: no limit. A float32, exactly.")
    count: Count = Field(description="Number of calibration samples.")
    hits: Count = Field(description="Samples for which the event holds.")
    weight: float | None = Field(
        None, description="Its share of the samples. Derived; optional in an import."
    )
    probability: float = Field(
        gt=0, lt=1, description="The served probability: hits / count, regularised."
    )
    interval: tuple[Annotated[float, Field(ge=0, le=1)], Annotated[float, Field(ge=0, le=1)]] = (
        Field(description="Interval of the probability.")
    )
    mean_uncertainty: float | None = Field(description="Mean of its samples; null without samples.")
    odds_ratio: float | None = Field(
        None,
        description="Its odds relative to the prior's. Derived; optional in an import.",
    )


class CurveKnots(Part):
    """The curve of a smooth lookup: linear between its knots, constant beyond the outer two."""

    uncertainty: list[float] = Field(
        min_length=1, max_length=MAX_KNOTS, description="Ascending; each is a float32, exactly."
    )
    probability: list[float] = Field(max_length=MAX_KNOTS, description="At each knot.")
    lower: list[float] = Field(max_length=MAX_KNOTS, description="Lower end of the interval.")
    upper: list[float] = Field(max_length=MAX_KNOTS, description="Upper end of the interval.")


FourNumbers = Annotated[list[float], Field(min_length=N_INPUTS, max_length=N_INPUTS)]


class LearnedFormula(Part):
    """The formula of the measure `learned`: docs/statistics.md."""

    k: int = Field(ge=1, description="The event.")
    temperature: int = Field(ge=0, lt=USUAL, description="Index in the grid.")
    intercept: float = Field(description="Constant.")
    saturated: float = Field(description="Added where all other classes have no mass.")
    linear: FourNumbers = Field(description="Coefficients of the inputs.")
    square: FourNumbers = Field(description="Coefficients of their squares.")
    lower: FourNumbers = Field(description="Least input in the calibration set.")
    upper: FourNumbers = Field(description="Largest input in the calibration set.")
    offset: list[float] = Field(description="By predicted class.")
    slope: list[float] = Field(description="Of the first input, by predicted class.")
    second: list[float] = Field(description="By second class.")


Matrix = Annotated[list[list[float]], Field(max_length=MOST_COMPLETE)]


class LabelFormula(Part):
    """The model of the labels, which the measure `learned` is computed by: docs/statistics.md."""

    n_recorded: int = Field(ge=2, description="Number m of top classes that it reads.")
    temperature: float = Field(description="T of the model's own probabilities.")
    floor: float = Field(ge=0, le=1, description="Added to each of them.")
    offset: list[float] = Field(description="By class.")
    slope: list[float] = Field(description="Of the class's own log-probability, by class.")
    mixing: Matrix = Field(
        description="Of all log-probabilities, by class of the input and then by class; empty if "
        "not used."
    )
    confusion: Matrix = Field(
        description="By predicted class and then by class; empty if not used."
    )


class Table(Part):
    """The bins of one measure for one event."""

    event: int = Field(ge=1, description="k of Top-k.")
    measure: MeasureName = Field(description="The uncertainty measure.")
    served: bool = Field(description="Whether this table serves the event.")
    lookup: Lookup = Field(description="Lookup between edges.")
    monotone: bool = Field(description="Whether bins were pooled until the probability falls.")
    requested_bins: int = Field(
        ge=1, le=MAX_BINS, description="Requested number of bins, or that chosen by `auto`."
    )
    quantile_bins: int = Field(
        ge=1, le=MAX_BINS, description="Bins before pooling; ties make fewer than requested."
    )
    interval: IntervalConfig = Field(description="Options of the intervals.")
    prior: Prior = Field(description="Prior of its probabilities.")
    bins: Annotated[list[Bin], FailFast()] = Field(
        min_length=1, max_length=MAX_BINS, description="From the most certain to the least."
    )
    curve: CurveKnots | None = Field(
        None, exclude_if=is_absent, description="Of a smooth lookup; otherwise omitted."
    )
    learned: LearnedFormula | None = Field(
        None,
        exclude_if=is_absent,
        description="Of the measure `learned` of earlier versions; otherwise omitted.",
    )
    label_model: LabelFormula | None = Field(
        None, exclude_if=is_absent, description="Of the measure `learned`; otherwise omitted."
    )
    effective_counts: list[Annotated[float, Field(gt=0)]] | None = Field(
        None,
        max_length=MAX_BINS,
        exclude_if=is_absent,
        description="Effective samples by bin, of a set with weights or groups; otherwise omitted. "
        "No answer depends on them.",
    )


class DocumentHead(Part):
    """Everything in a bins document but its tables."""

    schema_: Literal["howsure.bins/1", "howsure.bins/2"] = Field(
        alias="schema", description="Schema of this document and its version."
    )
    content_sha256: Digest = Field(
        description="SHA-256 of the content, independent of how the JSON is written."
    )
    calibration: Origin = Field(description="The calibration of the tables.")
    model_sha256: Digest | None = Field(
        description="SHA-256 of the ONNX file, an ensemble's first; null if outputs were uploaded."
    )
    model: ModelRun | None = Field(description="Options of running the model; null without one.")
    data_sha256: Digest = Field(description="SHA-256 of the calibration set.")
    data: Data = Field(description="The calibration set.")
    classes: Annotated[list[Annotated[str, Field(min_length=1, max_length=200)]], FailFast()] = (
        Field(min_length=2, description="Names of the classes, by index.")
    )
    top_k: list[Annotated[int, Field(ge=1)]] = Field(
        min_length=1, max_length=20, description="The events, by ascending k."
    )
    decision_threshold: float | None = Field(
        None,
        gt=0,
        lt=1,
        exclude_if=is_absent,
        description="Of two classes, as in the configuration; omitted if none was set.",
    )
    serve: dict[str, MeasureName] = Field(description="The served measure, by event.")
    out_of_distribution: OutOfDistribution = Field(description="Out-of-distribution flag.")
    selective: list[Selective] = Field(max_length=20, description="Risk targets of `abstain`.")


class BinsDocument(DocumentHead):
    """All bin tables of a calibration and everything else that its answers depend on."""

    tables: Annotated[list[Table], FailFast()] = Field(
        min_length=1, max_length=MAX_TABLES, description="One for each event and measure."
    )

    def plain(self) -> dict[str, Any]:
        """Return it as plain data, ready for JSON."""
        found = self.model_dump(mode="json", by_alias=True, exclude={"tables"})
        # One by one, so that other threads can run meanwhile.
        tables = [table.model_dump(mode="json", by_alias=True) for table in self.tables]
        return found | {"tables": tables}


def bin_columns(bins: Sequence[Bin]) -> BinColumns:
    """Return bins as columns, NaN where one lacks a number."""

    def column(name: str) -> Column:
        return np.array([getattr(found, name) for found in bins], np.float64)

    return BinColumns(
        lower=column("lower"),
        upper=column("upper"),
        counts=np.array([found.count for found in bins], np.int64),
        hits=np.array([found.hits for found in bins], np.int64),
        weight=column("weight"),
        probability=column("probability"),
        interval_lower=np.array([found.interval[0] for found in bins]),
        interval_upper=np.array([found.interval[1] for found in bins]),
        mean_uncertainty=column("mean_uncertainty"),
        odds_ratio=column("odds_ratio"),
    )


def schema_of(tables: Sequence[Table]) -> Literal["howsure.bins/1", "howsure.bins/2"]:
    """Return the schema of a document of these tables: the second one if any has further parts."""
    parts = (getattr(table, name) for table in tables for name in FURTHER_PARTS)
    return SCHEMAS[any(part is not None for part in parts)]


def core_curve(table: Table) -> Curve | None:
    """Return the curve of a smooth table.

    Raises
    ------
    ValueError
        If a value breaks a rule.
    """
    return None if table.curve is None else Curve(**table.curve.model_dump())


def learned_formula(table: Table) -> Formula | None:
    """Return the formula of a table's learned measure.

    Raises
    ------
    ValueError
        If a value breaks a rule.
    """
    formula = table.label_model or table.learned
    return None if formula is None else formula_of(formula.model_dump())

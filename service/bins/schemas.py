"""Bin tables as one document: what answers, with what it answers about, under a versioned schema.

It is written by ``GET /calibrations/{id}/bins`` and read by ``POST /calibrations/import``.
"""

import uuid
from collections.abc import Sequence
from typing import Annotated, Any, Final, Literal

import numpy as np
from pydantic import (
    AfterValidator,
    ConfigDict,
    Field,
    SerializerFunctionWrapHandler,
    model_serializer,
)

from howsure.statistics.bins.document import BinColumns, Column
from howsure.statistics.bins.lookup import Lookup
from service.calibrations.config import Name
from service.calibrations.fit_config import (
    MAX_BINS,
    IntervalConfig,
    MeasureName,
    OodConfig,
    SelectiveConfig,
    Strict,
)
from service.calibrations.preprocessing_config import PreprocessingConfig
from service.graph.description import Kind, Precision
from service.runner.messages.convert import to_json
from service.runner.messages.passes import read_pass_plans

SCHEMA: Final = "howsure.bins/1"
MAX_COUNT = 2**63 - 1
MAX_TABLES = 5_000

Digest = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
Count = Annotated[int, Field(ge=0, le=MAX_COUNT)]


def _plain_plans(plans: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the plans with every number of the type it has, whatever JSON made of it."""
    return [to_json(plan) for plan in read_pass_plans(plans)]


Plans = Annotated[list[dict[str, Any]], AfterValidator(_plain_plans)]


class Part(Strict):
    """A part of the document: nothing unknown in it, and no number that is not finite."""

    model_config = ConfigDict(allow_inf_nan=False)


class Origin(Part):
    """Which calibration the tables are of; no answer depends on it."""

    id: uuid.UUID | None = Field(None, description="Where it was made.")
    name: Name = Field(description="An import takes it, unless it is told another.")
    version: int | None = Field(None, description="Of that name.")


class ReadOutput(Part):
    """How class scores are read from one ONNX file."""

    name: str = Field(description="The output that was chosen.")
    kind: Kind = Field(description="What the tensor holds.")
    tensor: str = Field(description="The tensor that is read for it.")
    positive_column: int | None = Field(description="Of a binary model with one score.")
    raw: bool = Field(description="Whether a classifier's own softmax is left out.")
    precision: Precision = Field(description="What uncertainties are computed in.")


class ModelRun(Part):
    """How the ONNX model is run, beyond the digest of its file."""

    members: list[Digest] = Field(description="SHA-256 of an ensemble's further members.")
    companions: dict[str, Digest] = Field(
        description="SHA-256 of each file with external weights, by its name."
    )
    outputs: list[ReadOutput] = Field(
        min_length=1, description="How class scores are read, one entry a member."
    )
    averaged: bool = Field(description="Whether the prediction is a mean, of members or passes.")
    passes: Plans = Field(
        description="How the measures that answer by running the model more than once do it."
    )
    preprocessing: PreprocessingConfig | None = Field(
        None, description="What makes pictures the model's input; left out where nothing does."
    )

    @model_serializer(mode="wrap")
    def _as_before(self, write: SerializerFunctionWrapHandler) -> dict[str, Any]:
        # Documents from before pictures have no such key, and their digests are to hold.
        found: dict[str, Any] = write(self)
        if self.preprocessing is None:
            found.pop("preprocessing", None)
        else:
            found["preprocessing"] = self.preprocessing.resolved().as_dict()
        return found


class Data(Part):
    """The calibration set, beyond its digest."""

    samples: int = Field(ge=1, le=MAX_COUNT, description="How many it holds.")
    kind: Literal["inputs", "logits", "probabilities"] = Field(description="Of what.")


class OutOfDistribution(OodConfig, Part):
    """When a sample is flagged, by the measure that serves Top-1."""

    threshold: float | None = Field(
        description="Flagged above it; null where Top-1 was not calibrated. A float32."
    )


class Selective(SelectiveConfig, Part):
    """What is accepted at a risk, by the measure that serves Top-1."""

    threshold: float | None = Field(
        description="Accepted up to it; null where no threshold keeps to the risk. A float32."
    )
    coverage: Annotated[float, Field(ge=0, le=1)] | None = Field(
        description="Share of the calibration set that is accepted."
    )
    n_accepted: Count = Field(description="Its samples that are accepted.")
    n_errors: Count = Field(description="Those of them for which the event does not hold.")
    labels_missing: Count | None = Field(
        description="About how many more labels would find a threshold."
    )


class Prior(Part):
    """The prior that regularises each bin's hit rate."""

    accuracy: float = Field(gt=0, lt=1, description="Its mean.")
    strength: float = Field(gt=0, le=1e6, description="Pseudo-samples it counts for.")
    degenerate: bool = Field(
        description="Whether the event always or never happened, and the mean is a stand-in."
    )


class Bin(Part):
    """Samples with an uncertainty in (lower, upper]."""

    lower: float | None = Field(description="Null: no limit. A float32, exactly.")
    upper: float | None = Field(description="Null: no limit. A float32, exactly.")
    count: Count = Field(description="Calibration samples in it.")
    hits: Count = Field(description="Those for which the event holds.")
    weight: float | None = Field(
        None, description="Its share of the samples. Follows from the rest; an import may lack it."
    )
    probability: float = Field(gt=0, lt=1, description="What is served: hits / count, regularised.")
    interval: tuple[Annotated[float, Field(ge=0, le=1)], Annotated[float, Field(ge=0, le=1)]] = (
        Field(description="Of the probability, which it holds.")
    )
    mean_uncertainty: float | None = Field(description="Of its samples; null without any.")
    odds_ratio: float | None = Field(
        None,
        description="Its odds against the prior's. Follows from the rest; an import may lack it.",
    )


class Table(Part):
    """The bins of one measure for one event."""

    event: int = Field(ge=1, description="k of Top-k.")
    measure: MeasureName = Field(description="The uncertainty measure whose values are binned.")
    served: bool = Field(description="Whether this table answers for the event.")
    lookup: Lookup = Field(description="How it is read between edges.")
    monotone: bool = Field(description="Whether bins were pooled to make it fall.")
    requested_bins: int = Field(
        ge=1, le=MAX_BINS, description="Bins asked for, or chosen by `auto`."
    )
    quantile_bins: int = Field(
        ge=1, le=MAX_BINS, description="Bins before pooling; fewer than asked for by ties."
    )
    interval: IntervalConfig = Field(description="How the intervals were made.")
    prior: Prior = Field(description="What regularises its probabilities.")
    bins: list[Bin] = Field(
        min_length=1, max_length=MAX_BINS, description="From the most certain to the least."
    )


class BinsDocument(Part):
    """All bin tables of a calibration, and all else that its answers depend on."""

    schema_: Literal["howsure.bins/1"] = Field(
        alias="schema", description="Of this document; another number is read otherwise."
    )
    content_sha256: Digest = Field(
        description="SHA-256 of all content, in a form that does not depend on who writes it."
    )
    calibration: Origin = Field(description="Whose tables they are.")
    model_sha256: Digest | None = Field(
        description="Of the ONNX file, an ensemble's first; null when outputs were uploaded."
    )
    model: ModelRun | None = Field(description="How that is run; null without one.")
    data_sha256: Digest = Field(description="Of the calibration set.")
    data: Data = Field(description="Of the calibration set.")
    classes: list[Annotated[str, Field(min_length=1, max_length=200)]] = Field(
        min_length=2, description="Names of the classes, by index."
    )
    top_k: list[Annotated[int, Field(ge=1)]] = Field(
        min_length=1, max_length=20, description="The events, by ascending k."
    )
    serve: dict[str, MeasureName] = Field(description="The measure that answers, by event.")
    out_of_distribution: OutOfDistribution = Field(description="The flag of that name.")
    selective: list[Selective] = Field(max_length=20, description="What `abstain` keeps to.")
    tables: list[Table] = Field(
        min_length=1, max_length=MAX_TABLES, description="One for each event and measure."
    )

    def plain(self) -> dict[str, Any]:
        """Return it as plain data, ready for JSON."""
        return self.model_dump(mode="json", by_alias=True)


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

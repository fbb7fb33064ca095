"""A calibration prepared for predictions: bin tables, thresholds and the model."""

import math
from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple, TypeAlias, cast

import msgspec
import numpy as np
from numpy.typing import NDArray

import models
from howsure.bins_document.pass_plan import JACOBIAN
from howsure.events import HeadOutputs, TabledEvent, label_odds
from howsure.statistics.bins.curve import Curve
from howsure.statistics.bins.table import BinTable
from howsure.statistics.input_ranges import ColumnRanges, InputRange
from howsure.statistics.label_model.model import LabelModel, LabelOdds
from howsure.statistics.learned.inputs import n_read_classes
from howsure.statistics.measures import supplied_names
from howsure.statistics.ranking import ADVERSARIAL_LEVEL
from service.runner.messages.dataset import ScoreRange
from service.runner.messages.onnx_models import OnnxModelFiles, least_and_most, outside
from service.runner.model_to_serve import ModelToServe
from service.storage.calibration_queries import CalibrationRef


class EventProbability(msgspec.Struct, gc=False):
    """The JSON of one event of one row; ``probability`` is the calibrated one."""

    probability: float
    interval: tuple[float, float]
    measure: str
    uncertainty: float
    bin: int


ScalarLookup: TypeAlias = Callable[[float], EventProbability]


def scalar_lookup(table: BinTable, measure: str) -> ScalarLookup | None:
    """Return a function that looks up one uncertainty exactly as `BinTable.look_up` does.

    Return None for an interpolated table, which needs arrays.
    """
    if table.curve is not None:
        return _on_curve(table, table.curve, measure)
    if table.lookup != "step":
        return None
    edges: list[float] = table.edges[1:-1].tolist()
    probability: list[float] = table.probability.tolist()
    interval: list[tuple[float, float]] = list(
        zip(table.lower.tolist(), table.upper.tolist(), strict=True)
    )

    def at(value: float) -> EventProbability:
        found = bisect_left(edges, value)
        return EventProbability(probability[found], interval[found], measure, value, found)

    return at


def _on_curve(table: BinTable, curve: Curve, measure: str) -> ScalarLookup:
    edges: list[float] = table.edges[1:-1].tolist()
    knots: list[float] = curve.uncertainty.tolist()
    start, base, slope = curve.lines
    lines: list[tuple[float, ...]] = list(
        zip(start.tolist(), *base.tolist(), *slope.tolist(), strict=True)
    )

    def at(value: float) -> EventProbability:
        x, p, low, high, dp, dlow, dhigh = lines[bisect_left(knots, value)]
        along = value - x
        probability = p + dp * along
        interval = (min(low + dlow * along, probability), max(high + dhigh * along, probability))
        return EventProbability(probability, interval, measure, value, bisect_left(edges, value))

    return at


def ood_threshold(served: Sequence[models.BinTable], level: float) -> float | None:
    """Return the uncertainty above which samples are flagged; None if Top-1 is not served."""
    thresholds: dict[str, float] = _top1(served).get("ood_thresholds", {})
    return thresholds.get(str(level))


def adversarial_threshold(served: Sequence[models.BinTable]) -> float | None:
    """Return the norm of the Jacobian above which samples are flagged as adversarial.

    None if ``jacobian_norm`` serves no event, or an import lacks the threshold.
    """
    table = next((table for table in served if table.measure == JACOBIAN), None)
    thresholds: dict[str, float] = {} if table is None else table.analysis.get("ood_thresholds", {})
    return thresholds.get(str(ADVERSARIAL_LEVEL))


def accept_thresholds(
    served: Sequence[models.BinTable], targets: Sequence[Mapping[str, float]]
) -> dict[str, float | None]:
    """Return the largest accepted uncertainty by maximal risk."""
    return {
        repr(float(target["max_risk"])): None if found is None else found["threshold"]
        for target, found in accept_results(served, targets)
    }


def accept_results(
    served: Sequence[models.BinTable], targets: Sequence[Mapping[str, float]]
) -> list[tuple[Mapping[str, float], dict[str, Any] | None]]:
    """Return each target with its result, or None if there is none."""
    found = {result["target"]["max_risk"]: result for result in _top1(served).get("selective", [])}
    return [(target, found.get(target["max_risk"])) for target in targets]


def _top1(served: Sequence[models.BinTable]) -> dict[str, Any]:
    return next((table.analysis for table in served if table.k == 1), {})


@dataclass(frozen=True)
class ServedEvent(TabledEvent):
    """An event with what its answers are read from."""

    @property
    def name(self) -> str:
        """The event's name in answers."""
        return f"top{self.k}"

    @cached_property
    def at(self) -> ScalarLookup | None:
        """The function that looks up one uncertainty; None if the lookup requires arrays."""
        return scalar_lookup(self.table, self.measure)

    @cached_property
    def float32(self) -> NDArray[np.float32] | None:
        """Probability and interval of each bin; None if the answer also depends on the value."""
        if self.table.lookup != "step":
            return None
        columns = [self.table.probability, self.table.lower, self.table.upper]
        return np.stack(columns, 1).astype(np.float32)


@dataclass(frozen=True, eq=False)
class ServedModel:
    """A model to serve and the bytes of an input row; free sizes count as 1.

    ``bytes_a_row`` holds the observed bytes per row of bodies, by media type.
    """

    to_serve: ModelToServe
    row_bytes: int
    bytes_a_row: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class ServedOnnxModel(ServedModel):
    """An ONNX model."""

    @property
    def files(self) -> OnnxModelFiles:
        """The files of the ONNX model."""
        return cast("OnnxModelFiles", self.to_serve.files)

    @property
    def resolved(self) -> Mapping[str, Any]:
        """The options to run it with."""
        return self.to_serve.resolved


@dataclass(frozen=True)
class ServedOperatingPoint:
    """The active operating point: a name and a threshold on the uncertainty of Top-1."""

    name: str
    threshold: float


class OutputType(NamedTuple):
    """The type of an output tensor: its sizes without rows, and the values and bytes of a row."""

    name: str
    datatype: str
    sizes: tuple[int, ...]
    per_row: int
    row_bytes: int


@dataclass(frozen=True, eq=False)
class ServedCalibration:
    """Everything that predictions need.

    The thresholds are those of the measure that serves Top-1: beyond ``ood_threshold`` a sample
    is unlike the calibration set, and beyond an entry of ``accept_thresholds``, by maximal risk,
    answering it would break that risk. ``adversarial_threshold`` is that of ``jacobian_norm``, if
    it serves an event. None where there is none. ``operating_point`` alone may change; a change
    makes another copy. ``has_classes`` is false if requests hold scores of pairs.
    ``takes_other_columns`` tells whether tables may have columns that it does not know.
    ``score_range`` has the smallest and the largest score of a calibration set of pairs, and
    ``texts`` the few texts of each column of it that is not read.
    ``input_ranges`` has the ranges of the model's inputs in the calibration set, and
    ``column_ranges`` those of their columns. ``n_bytes`` estimates its memory.
    """

    ref: CalibrationRef
    model: ServedModel
    class_names: Sequence[str]
    top_k: tuple[int, ...]
    ood_threshold: float | None
    accept_thresholds: Mapping[str, float | None]
    events: Sequence[ServedEvent]
    adversarial_threshold: float | None = None
    operating_point: ServedOperatingPoint | None = None
    has_classes: bool = True
    takes_other_columns: bool = True
    score_range: ScoreRange | None = None
    texts: Mapping[str, Sequence[str]] = field(default_factory=dict)
    input_ranges: Mapping[str, InputRange] = field(default_factory=dict)
    column_ranges: Mapping[str, ColumnRanges] = field(default_factory=dict)
    n_bytes: int = 0
    # Types of the output tensors by name, filled by the first answers.
    output_types: dict[str, OutputType] = field(init=False, repr=False, default_factory=dict)
    # JSON of responses with raw tensors only, by the number of rows and the names of the outputs.
    output_heads: dict[tuple[int | str, ...], bytes] = field(
        init=False, repr=False, default_factory=dict
    )

    @property
    def onnx_model(self) -> ServedOnnxModel | None:
        """The ONNX model; None if requests hold logits or probabilities."""
        return self.model if isinstance(self.model, ServedOnnxModel) else None

    @property
    def abstain_thresholds(self) -> Mapping[str, float | None]:
        """Thresholds of `abstain` by name: the operating point first, then each risk."""
        point = self.operating_point
        return ({} if point is None else {point.name: point.threshold}) | dict(
            self.accept_thresholds
        )

    @cached_property
    def unproven(self) -> list[str]:
        """The names in `abstain` to which no threshold keeps."""
        return [name for name, found in self.abstain_thresholds.items() if found is None]

    @cached_property
    def json_ref(self) -> dict[str, str | int]:
        """The calibration as responses name it."""
        return {"id": str(self.ref.id), "name": self.ref.name, "version": self.ref.version}

    @cached_property
    def columns(self) -> list[str]:
        """The columns of the model's output that answers are computed from."""
        return [*needed_columns(self.events, self.input_ranges), *self.marks]

    @cached_property
    def marks(self) -> list[str]:
        """The columns that are 1 where a column of an input is out of its range, else 0."""
        return [outside(name) for name in self.column_ranges]

    @cached_property
    def extents(self) -> list[tuple[str, str, InputRange]]:
        """For each input, the output columns of its extent in a row, and its known range."""
        return [(*least_and_most(name), found) for name, found in self.input_ranges.items()]

    @cached_property
    def is_scalar(self) -> bool:
        """Whether a few rows can be answered without arrays."""
        return all(event.at is not None for event in self.events)

    @cached_property
    def supplied(self) -> tuple[str, ...]:
        """Names of the uncertainties that every request must hold."""
        return supplied_names(event.measure for event in self.events)

    @cached_property
    def top1(self) -> int | None:
        """The position of Top-1 among the events, if it was calibrated."""
        return next((place for place, event in enumerate(self.events) if event.k == 1), None)

    @cached_property
    def adversarial(self) -> tuple[int, float] | None:
        """The position of an event that ``jacobian_norm`` serves, and its threshold in float32."""
        threshold = _float32(self.adversarial_threshold)
        if threshold is None:
            return None
        places = (place for place, event in enumerate(self.events) if event.measure == JACOBIAN)
        return next(places), threshold

    @cached_property
    def n_read(self) -> int:
        """Number of classes of each row of the model's output."""
        return n_read_classes(len(self.class_names), self.columns)

    @cached_property
    def label_model(self) -> LabelModel | None:
        """The model of the labels, which all events with it share; None if none is served by it."""
        formulas = (event.learned for event in self.events)
        return next((one for one in formulas if isinstance(one, LabelModel)), None)

    def odds(self, outputs: HeadOutputs) -> LabelOdds | None:
        """Return the log-probabilities of the classes; None without a model of the labels."""
        return label_odds(self.label_model, outputs)

    @cached_property
    def flags(self) -> "Flags":
        """Thresholds that an uncertainty in float32 is compared with."""
        # Nothing is accepted where no threshold keeps to a risk.
        abstain = {
            name: -math.inf if threshold is None else float(np.float32(threshold))
            for name, threshold in self.abstain_thresholds.items()
        }
        if self.top1 is None:
            return Flags(None, abstain)
        # The measure of pairs is the negative score.
        least = None if self.score_range is None else -self.score_range[1]
        return Flags(_float32(self.ood_threshold), abstain, _float32(least))


def needed_columns(
    events: Sequence[ServedEvent], input_ranges: Mapping[str, InputRange]
) -> list[str]:
    """Return the columns of a model's output that answers are computed from."""
    found = {name for event in events for name in event.needs}
    return sorted(found.union(*map(least_and_most, input_ranges)))


class Flags(NamedTuple):
    """Thresholds on the uncertainty of Top-1, each rounded to float32.

    Rows of pairs are out of distribution below ``least_uncertainty``, too: no score of the
    calibration set was as large.
    """

    out_of_distribution: float | None
    abstain: Mapping[str, float]
    least_uncertainty: float | None = None


def _float32(threshold: float | None) -> float | None:
    return None if threshold is None else float(np.float32(threshold))

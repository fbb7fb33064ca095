"""Typed view of the stored description of a model, and the cost of its answers."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

from howsure.bins_document.pass_plan import ENSEMBLE, PLAIN, PassPlan, without_shared_runs
from models import Calibration
from service.runner.messages.convert import convert
from service.runner.messages.onnx_models import LoadedOnnxModel

OnnxModel = Mapping[str, Any]


@dataclass(frozen=True)
class ModelRuns:
    """Runs of the whole model for one row; their time is None if they were not timed."""

    passes: int
    ms_per_row: float | None

    def __add__(self, other: Self) -> "ModelRuns":
        """Return the sum of both."""
        own, more = self.ms_per_row, other.ms_per_row
        both = None if own is None or more is None else own + more
        return ModelRuns(self.passes + other.passes, both)


@dataclass(frozen=True)
class ModelDescription:
    """A calibration's ``onnx_model``. Descriptions from earlier releases lack some keys."""

    stored: OnnxModel

    @classmethod
    def of(cls, row: Calibration) -> "ModelDescription | None":
        """Return the description of a calibration's model; None without a model."""
        return None if row.onnx_model is None else cls(row.onnx_model)

    @property
    def resolved(self) -> OnnxModel:
        """How the model is loaded and its outputs are read."""
        found: OnnxModel = self.stored["resolved"]
        return found

    @property
    def top_k(self) -> tuple[int, ...]:
        """The events that the model was prepared for."""
        return tuple(self.resolved["top_k"])

    @property
    def is_averaged(self) -> bool:
        """Whether the prediction is the mean of several runs."""
        return bool(self.resolved.get("averaged"))

    @property
    def predicts_logits(self) -> bool:
        """Whether the prediction consists of logits; a mean consists of probabilities."""
        return self.stored["output"]["kind"] == "logits" and not self.is_averaged

    @property
    def scalar_outputs(self) -> list[str]:
        """The outputs of the model that records keep as measures."""
        return list(self.resolved.get("scalar_outputs", []))

    @property
    def passes(self) -> tuple[PassPlan, ...]:
        """The plans of the measures that run the model several times."""
        return _plans(self.resolved)

    @property
    def pass_measures(self) -> list[str]:
        """The measures that run the model several times."""
        return [plan.measure for plan in self.passes]

    @property
    def all_runs(self) -> ModelRuns:
        """The cost of a row with all measures that run the model several times."""
        return runs_of(self.stored, self.pass_measures)

    @property
    def outputs(self) -> list[dict[str, Any]]:
        """The output that is read of each member."""
        return [self.resolved["output"], *self.resolved.get("members", [])]


def costs_of(loaded: LoadedOnnxModel) -> dict[str, Any]:
    """Return the costs of a row: of one run, and of each measure."""
    runs = {PLAIN: 1} | {plan.measure: plan.runs for plan in loaded.passes}
    return {name: {"passes": runs[name], "ms_per_row": cost} for name, cost in loaded.costs.items()}


def runs_of(onnx_model: OnnxModel, measures: Sequence[str]) -> ModelRuns:
    """Return the cost of answering a row with these measures.

    If the prediction is a mean, the averaged runs also give its variance.
    """
    resolved = onnx_model["resolved"]
    runs = {plan.measure: plan.runs for plan in _plans(resolved)}
    if resolved.get("averaged"):
        members = len(onnx_model.get("members", ()))
        return _averaged(onnx_model, members or runs[ENSEMBLE])
    total = ModelRuns(1, _time(onnx_model, PLAIN))
    for measure in without_shared_runs(measures):
        if measure in runs:
            total += ModelRuns(runs[measure], _time(onnx_model, measure))
    return total


def _plans(resolved: Mapping[str, Any]) -> tuple[PassPlan, ...]:
    # Models stored by earlier releases lack the key.
    return convert(resolved.get("passes", []), tuple[PassPlan, ...], name="plans of passes")


def _averaged(onnx_model: OnnxModel, runs: int) -> ModelRuns:
    together, one = _time(onnx_model, ENSEMBLE), _time(onnx_model, PLAIN)
    if together is None and one is not None:
        together = runs * one
    return ModelRuns(runs, together)


def _time(onnx_model: OnnxModel, name: str) -> float | None:
    found = (onnx_model.get("costs") or {}).get(name)
    return None if found is None else float(found["ms_per_row"])

"""A calibration without a model: how the outputs that requests bring are read."""

from dataclasses import dataclass
from typing import Any

from howsure.statistics.measures import columns
from howsure.statistics.measures.measure import SUPPLIED_COLUMN
from service.graph.description import DecisionThreshold, OutputChoice
from service.runner.messages.convert import to_fields
from service.runner.messages.dataset import ScoreRange


@dataclass(frozen=True)
class ScoredEvent:
    """An event that is answered from the outputs: its measure, and the measure's column.

    ``inputs`` are those of the learned measure, if that serves.
    """

    k: int
    measure: str
    column: str
    inputs: tuple[str, ...] = ()


@dataclass(frozen=True)
class ScoresModelSpec:
    """A calibration of uploaded outputs.

    Attributes
    ----------
    kind
        What the calibration set held, ``logits`` or ``probabilities``; requests may bring either.
    supplied
        Names of the uncertainties that each request brings.
    score_range
        Of pairs: the smallest and the largest score of the calibration set, where it is known.
    class_names
        Names of the classes by index; empty where they have none but their indices.
    has_named_columns
        Whether the calibration set named the classes.
    may_be_probabilities
        Whether logits that are distributions are taken: those of the calibration set were.
    decision_threshold
        That of two classes: see `OutputChoice`.
    """

    kind: str
    n_classes: int
    top_k: tuple[int, ...]
    events: tuple[ScoredEvent, ...]
    supplied: tuple[str, ...]
    score_range: ScoreRange | None = None
    class_names: tuple[str, ...] = ()
    has_named_columns: bool = False
    may_be_probabilities: bool = False
    decision_threshold: DecisionThreshold = None

    @property
    def output(self) -> OutputChoice:
        """The output that is read."""
        return OutputChoice(
            name=self.kind, kind="logits", tensor=self.kind, inferred="", n_classes=self.n_classes
        )

    @property
    def columns(self) -> frozenset[str]:
        """The uncertainties of the events that logits give, and those that requests bring."""
        given = self.given_by("logits")
        own = {event.column for event in self.events if event.column in given}
        supplied = (f"{SUPPLIED_COLUMN}{name}" for name in self.supplied)
        return frozenset(own.union(supplied, *(event.inputs for event in self.events)))

    def given_by(self, kind: str) -> frozenset[str]:
        """Return the uncertainties that logits, or probabilities, give."""
        found = columns(self.top_k, logits=kind == "logits")
        return frozenset(name for name, _, _ in found)

    def resolved(self) -> dict[str, Any]:
        """Return what `LoadedOnnxModel.resolved` is for an ONNX model."""
        return {
            "output": to_fields(self.output),
            "top_k": list(self.top_k),
            "fixed_batch": None,
            "columns": sorted(self.columns),
            "scores": to_fields(self),
        }

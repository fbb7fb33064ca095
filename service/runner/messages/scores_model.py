"""What answers for a calibration without a model: how the outputs that are sent to it are read."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Self

import msgspec

from howsure.statistics.measures import columns
from service.graph.description import OutputChoice


@dataclass(frozen=True)
class ScoredEvent:
    """An event that the outputs themselves answer: its measure, and the measure's column."""

    k: int
    measure: str
    column: str


@dataclass(frozen=True)
class ScoresModelSpec:
    """A calibration of uploaded outputs.

    Attributes
    ----------
    kind
        What its set held, ``logits`` or ``probabilities``; requests may bring either.
    supplied
        Names of the uncertainties that come with each request.
    """

    kind: str
    n_classes: int
    top_k: tuple[int, ...]
    events: tuple[ScoredEvent, ...]
    supplied: tuple[str, ...]

    def as_fields(self) -> dict[str, Any]:
        """Return plain JSON values."""
        return asdict(self)

    @classmethod
    def of(cls, fields: Mapping[str, Any]) -> Self:
        """Return what `as_fields` wrote."""
        return msgspec.convert(fields, cls)

    @property
    def output(self) -> OutputChoice:
        """The output that is read."""
        return OutputChoice(
            name=self.kind, kind="logits", tensor=self.kind, inferred="", n_classes=self.n_classes
        )

    @property
    def columns(self) -> frozenset[str]:
        """The uncertainties that outputs can give, of those that answer."""
        given = self.given_by("logits")
        return frozenset(event.column for event in self.events if event.column in given)

    def given_by(self, kind: str) -> frozenset[str]:
        """Return the uncertainties that logits, or probabilities, give."""
        found = columns(self.top_k, logits=kind == "logits")
        return frozenset(name for name, _, _ in found)

    def resolved(self) -> dict[str, Any]:
        """Return the same as of an ONNX model, to read its answers by."""
        return {
            "output": self.output.as_dict(),
            "top_k": list(self.top_k),
            "fixed_batch": None,
            "columns": sorted(self.columns),
            "scores": self.as_fields(),
        }

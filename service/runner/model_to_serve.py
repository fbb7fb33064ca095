"""What is needed to load a model and to read its answers."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

from service.runner.answers import Expected, expected_of
from service.runner.description import HeadOutputs, OnnxModelFiles
from service.runner.frames import Array

# Rows to run before anybody is answered, and what to make of their answers and the provider.
Rehearsal: TypeAlias = tuple[Mapping[str, Array], Callable[[HeadOutputs, str], None]]


@dataclass(frozen=True, eq=False)
class ModelToServe:
    """Files and choice of a model. ``rehearse`` is called in a thread each time it was loaded.

    What the rehearsal raises is told to who waits for the model.
    """

    files: OnnxModelFiles
    resolved: Mapping[str, Any]
    name: str
    rehearse: Callable[[], Rehearsal | None] = lambda: None

    @cached_property
    def key(self) -> tuple[str, ...]:
        """What tells this model, run so, from others."""
        return self.files.key(self.resolved)

    @cached_property
    def expected(self) -> Expected:
        """What its answers look like."""
        return expected_of(self.resolved)

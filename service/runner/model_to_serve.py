"""What is needed to load a model and to read its answers."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, TypeAlias

from service.errors import ServiceError
from service.runner.messages.frames import Array
from service.runner.messages.onnx_models import HeadOutputs, NoFiles, OnnxModelFiles
from service.runner.model_output import Expected, expected_of


@dataclass(frozen=True)
class ProviderParity:
    """Whether a model answers with the provider that runs it as with the one before.

    ``not_needed`` where the two are the same, ``checked`` on so many rows, ``unchecked`` where
    there are none.
    """

    status: Literal["not_needed", "checked", "unchecked"]
    rows: int = 0


NOT_NEEDED = ProviderParity("not_needed")
UNCHECKED = ProviderParity("unchecked")

# Runs rows through the model that was loaded, all in one request.
RunRows: TypeAlias = Callable[[Mapping[str, Array]], HeadOutputs]
# Given that and the provider that runs the model.
Rehearse: TypeAlias = Callable[[RunRows, str], ProviderParity]


@dataclass(frozen=True, eq=False)
class ModelToServe:
    """Files and choice of a model. ``rehearse`` is called in a thread each time it was loaded.

    What the rehearsal raises is told to who waits for the model. Models that differ in nothing
    but ``apart`` are loaded each for itself: their rehearsals are not each other's.
    """

    files: OnnxModelFiles | NoFiles
    resolved: Mapping[str, Any]
    name: str
    rehearse: Rehearse = lambda _run, _provider: NOT_NEEDED
    apart: str = ""

    @cached_property
    def key(self) -> tuple[str, ...]:
        """What tells this model, run so, from others."""
        return (*self.files.key(self.resolved), self.apart)

    @cached_property
    def expected(self) -> Expected:
        """What its answers look like."""
        return expected_of(self.resolved)


Status: TypeAlias = Literal["loaded", "loading", "failed", "unloaded"]


@dataclass(frozen=True)
class ServedModelState:
    """A model that is held: loaded, or asked for before.

    It is ``unloaded`` after its process died and while nobody asks for it; ``error`` says why it
    ``failed``. What is known of a loaded one alone is None, or 0, of others.
    """

    name: str
    sha256: str
    status: Status
    error: ServiceError | None
    provider: str | None
    device: str | None
    memory_bytes: int
    pid: int | None
    pending: int
    seconds_unused: float
    parity: ProviderParity | None

"""A model that answers predictions, and its state."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, TypeAlias

from howsure.events import HeadOutputs
from service.errors import ServiceError
from service.runner.messages.frames import Array
from service.runner.messages.onnx_models import NoFiles, OnnxModelFiles
from service.runner.model_output import OutputSpec, output_spec


@dataclass(frozen=True)
class ProviderParity:
    """Whether a model gives the same answers on this execution provider as when calibrated.

    ``not_needed`` if the provider is the same, ``checked`` on ``rows`` rows, ``unchecked`` if
    there are no rows to check.
    """

    status: Literal["not_needed", "checked", "unchecked"]
    rows: int = 0


NOT_NEEDED = ProviderParity("not_needed")
UNCHECKED = ProviderParity("unchecked")

# Runs rows through the loaded model, all in one request.
RunRows: TypeAlias = Callable[[Mapping[str, Array]], HeadOutputs]
# Receives that function and the execution provider.
Rehearse: TypeAlias = Callable[[RunRows, str], ProviderParity]


@dataclass(frozen=True, eq=False)
class ModelToServe:
    """Files of a model, and how it is loaded.

    ``rehearse`` is called in a thread after each load; requests that wait for the model fail with
    the error that it raises. Models that differ only in ``apart`` are loaded separately, since
    their rehearsals differ.
    """

    files: OnnxModelFiles | NoFiles
    resolved: Mapping[str, Any]
    name: str
    rehearse: Rehearse = lambda _run, _provider: NOT_NEEDED
    apart: str = ""

    @cached_property
    def key(self) -> tuple[str, ...]:
        """The key of this model, loaded in this way."""
        return (*self.files.key(self.resolved), self.apart)

    @cached_property
    def spec(self) -> OutputSpec:
        """The specification of its answers."""
        return output_spec(self.resolved)


Status: TypeAlias = Literal["loaded", "loading", "failed", "unloaded"]


@dataclass(frozen=True)
class ServedModelState:
    """A model that was requested.

    It is ``unloaded`` after its process died, until the next request; ``error`` is the reason of
    ``failed``. Provider, device, memory, pid and parity are None or 0 unless it is ``loaded``.
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

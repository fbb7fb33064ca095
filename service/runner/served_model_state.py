"""What there is to say of a model that answers predictions."""

from dataclasses import dataclass
from typing import Literal, TypeAlias

from service.errors import ServiceError
from service.runner.model_to_serve import ProviderParity

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

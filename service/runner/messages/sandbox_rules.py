"""How the process that runs an ONNX model is locked in, as its parent says and sees it."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cache
from typing import Any, Literal, TypeAlias

from service.child.lockdown.support import missing

FILE_BYTES = 32 * 2**20

Level: TypeAlias = Literal["full", "none"]


@dataclass(frozen=True)
class SandboxRules:
    """What a child may do.

    Parameters
    ----------
    allow_unsandboxed
        Whether models run where the kernel cannot lock their process in.
    memory_bytes
        Address space that a model may take, on the CPU; 0 is as much as the machine has memory.
    file_bytes
        Largest file it may make; files of its own lie in memory, as the sets in requests.
    """

    allow_unsandboxed: bool = False
    memory_bytes: int = 0
    file_bytes: int = FILE_BYTES

    def as_dict(self) -> dict[str, Any]:
        """Return the fields, as `from_dict` takes them."""
        return asdict(self)

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> "SandboxRules":
        """Return the rules of a request's fields."""
        return cls(
            allow_unsandboxed=bool(fields["allow_unsandboxed"]),
            memory_bytes=int(fields["memory_bytes"]),
            file_bytes=int(fields["file_bytes"]),
        )


DEFAULT_RULES = SandboxRules()


@dataclass(frozen=True)
class Sandbox:
    """Whether processes can be locked in here, and what is missing if not."""

    level: Level
    missing: tuple[str, ...]


@cache
def find_sandbox() -> Sandbox:
    """Ask the kernel, once."""
    lacking = missing()
    return Sandbox("none" if lacking else "full", lacking)

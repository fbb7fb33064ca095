"""The rights of a child process, and whether this kernel can enforce them."""

from dataclasses import dataclass
from functools import cache
from typing import Literal, TypeAlias

from service.child.lockdown.support import missing

FILE_BYTES = 32 * 2**20

Level: TypeAlias = Literal["full", "none"]


@dataclass(frozen=True)
class SandboxRules:
    """What a child may do.

    Parameters
    ----------
    allow_unsandboxed
        Whether models run where the kernel cannot sandbox their process.
    memory_bytes
        Address space that a model may take on the CPU; 0 means the memory of the machine.
    file_bytes
        Largest file that the child may create; its files exist in memory only.
    """

    allow_unsandboxed: bool = False
    memory_bytes: int = 0
    file_bytes: int = FILE_BYTES


DEFAULT_RULES = SandboxRules()


@dataclass(frozen=True)
class Sandbox:
    """Whether this kernel can sandbox processes, and what it lacks if not."""

    level: Level
    missing: tuple[str, ...]


@cache
def find_sandbox() -> Sandbox:
    """Ask the kernel, once."""
    lacking = missing()
    return Sandbox("none" if lacking else "full", lacking)

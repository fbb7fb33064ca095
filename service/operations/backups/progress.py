"""How far a backup or a restore is."""

from collections.abc import Callable
from typing import TypeAlias

# The stage, how many bytes of it are done, and of how many; both 0 where that is not known.
Tell: TypeAlias = Callable[[str, int, int], None]


def silent(_stage: str, _done: int, _total: int, /) -> None:
    """Tell nobody."""

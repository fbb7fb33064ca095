"""What every open set has in common: the end of a ``with`` block closes it."""

from types import TracebackType
from typing import Self


class ClosedAtTheEnd:
    """A set that is closed when its block ends, however it ends."""

    def close(self) -> None:
        """Let go of files, if any are open between reads."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

"""How many connections each server process holds, in memory that all of them share."""

import mmap
import os
import tempfile

ITEM = 4
ABSENT = -1


class OpenConnections:
    """One number a process, written by that process alone for as long as it lives.

    Parameters
    ----------
    descriptor : int
        A file with room for all of them, and of no other size; taken over.
    """

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor
        self._counts = memoryview(mmap.mmap(descriptor, 0)).cast("i")

    @classmethod
    def of(cls, processes: int) -> "OpenConnections":
        """Return the table of so many processes, none of which is there yet."""
        with tempfile.TemporaryFile() as file:
            file.write(ABSENT.to_bytes(ITEM, "little", signed=True) * processes)
            file.flush()
            return cls(os.dup(file.fileno()))

    def hold(self, place: int, count: int) -> None:
        """Say how many the process at ``place`` holds."""
        self._counts[place] = count

    def leave(self, place: int) -> None:
        """Say that there is no process at ``place``."""
        self._counts[place] = ABSENT

    def least(self) -> int:
        """Return how many are held by the process that holds the fewest."""
        return min((count for count in self._counts if count != ABSENT), default=0)

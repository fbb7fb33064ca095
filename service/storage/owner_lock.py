"""The owner of a SQLite file: the one process that may run calibrations on it."""

import fcntl
import os
from pathlib import Path
from typing import Self

from service.storage.database import Database
from service.storage.engine import sqlite_path


class OwnerLock:
    """A lock of the operating system on a file; it is gone when its process is, however it ends."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file: int | None = None

    @classmethod
    def beside(cls, database: Database) -> Self | None:
        """Return the lock of a SQLite file, or None on a database that has many owners."""
        path = sqlite_path(database.engine.url)
        return None if path is None else cls(path.with_name(path.name + ".owner"))

    def try_acquire(self) -> bool:
        """Become the owner, unless another process is; tell whether this one is now."""
        if self._file is not None:
            return True
        # The descriptor is not inherited, so that no child outlives the owner as the owner.
        file = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(file)
            return False
        except BaseException:
            os.close(file)
            raise
        self._file = file
        return True

    def release(self) -> None:
        """Let another process become the owner."""
        if self._file is not None:
            os.close(self._file)
            self._file = None

"""The owner of a SQLite file: the one process that may run calibrations on it."""

import fcntl
import os
import shutil
import tempfile
from pathlib import Path
from typing import Self

from service.storage.database import Database, sqlite_path


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
        """Try to become the owner; return whether this process is."""
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


_LOCK = ".lock"


class SpoolFolder:
    """A folder that is this process's for as long as it lives, however it ends."""

    def __init__(self, path: Path, lock: int) -> None:
        self.path = path
        self._lock = lock

    @classmethod
    def within(cls, root: Path) -> Self:
        """Make a folder below ``root``, and remove those whose processes are gone."""
        root.mkdir(parents=True, exist_ok=True)
        # One process at a time: a folder that is made and not yet locked would pass for dead.
        starting = _lock(root, wait=True)
        try:
            for folder in root.iterdir():
                if folder.is_dir():
                    _remove_if_dead(folder)
            path = Path(tempfile.mkdtemp(dir=root))
            return cls(path, _lock(path, wait=True))
        finally:
            os.close(starting)

    def remove(self) -> None:
        """Remove the folder and all in it."""
        shutil.rmtree(self.path, ignore_errors=True)
        os.close(self._lock)


def _remove_if_dead(folder: Path) -> None:
    try:
        lock = _lock(folder, wait=False)
    except (BlockingIOError, FileNotFoundError):  # its process lives, or removes it just now
        return
    shutil.rmtree(folder, ignore_errors=True)
    os.close(lock)


def _lock(folder: Path, *, wait: bool) -> int:
    """Take the folder's lock, which the operating system lets go with the process."""
    file = os.open(folder / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except BaseException:
        os.close(file)
        raise
    return file

"""Locks of files: the owner of a SQLite database, and folders of living processes."""

import fcntl
import os
import shutil
import tempfile
from pathlib import Path
from typing import Self

from service.storage.database import Database, sqlite_path


class OwnerLock:
    """A file lock, which the operating system releases when the process ends."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file: int | None = None

    @classmethod
    def beside(cls, database: Database) -> Self | None:
        """Return the lock of a SQLite file; None for databases that several processes may own."""
        path = sqlite_path(database.engine.url)
        return None if path is None else cls(path.with_name(path.name + ".owner"))

    def try_acquire(self) -> bool:
        """Try to become the owner; return whether this process is."""
        if self._file is not None:
            return True
        try:
            self._file = _lock(self.path, wait=False, mode=0o644)
        except BlockingIOError:
            return False
        return True

    def release(self) -> None:
        """Let another process become the owner."""
        if self._file is not None:
            os.close(self._file)
            self._file = None


_LOCK = ".lock"


class SpoolFolder:
    """A folder that belongs to this process until it ends."""

    def __init__(self, path: Path, lock: int) -> None:
        self.path = path
        self._lock = lock

    @classmethod
    def within(cls, root: Path) -> Self:
        """Make a folder below ``root``, and remove folders of processes that have ended."""
        root.mkdir(parents=True, exist_ok=True)
        # One process at a time: a new folder without a lock would look abandoned.
        starting = _lock(root / _LOCK, wait=True)
        try:
            for folder in root.iterdir():
                if folder.is_dir():
                    _remove_if_dead(folder)
            path = Path(tempfile.mkdtemp(dir=root))
            return cls(path, _lock(path / _LOCK, wait=True))
        finally:
            os.close(starting)

    def remove(self) -> None:
        """Remove the folder and its content."""
        shutil.rmtree(self.path, ignore_errors=True)
        os.close(self._lock)


def _remove_if_dead(folder: Path) -> None:
    try:
        lock = _lock(folder / _LOCK, wait=False)
    except (BlockingIOError, FileNotFoundError):  # its process lives, or removes it just now
        return
    shutil.rmtree(folder, ignore_errors=True)
    os.close(lock)


def _lock(path: Path, *, wait: bool, mode: int = 0o600) -> int:
    """Lock a file; the operating system releases the lock when this process ends."""
    # The descriptor is not inherited, so that no child keeps the lock.
    file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, mode)
    try:
        fcntl.flock(file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except BaseException:
        os.close(file)
        raise
    return file

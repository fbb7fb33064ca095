"""The folder that a backup is written to: under another name until all of it is there."""

import fcntl
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from service.errors import Conflict
from service.storage.durable import flush_to_disk

SUFFIX = ".partial"


@contextmanager
def unfinished(target: Path) -> Iterator[Path]:
    """Yield an empty folder ``TARGET.partial``, which becomes ``TARGET`` at the end of the block.

    A process that is killed leaves it under the name that says so, and the next backup to the same
    target begins anew there. An exception leaves nothing.

    Raises
    ------
    Conflict
        If the target exists, or another process writes to it.
    """
    if target.exists():
        raise Conflict(f"{target} exists: choose another name for the backup.")
    folder = target.with_name(target.name + SUFFIX)
    folder.mkdir(parents=True, exist_ok=True)
    lock = _lock(folder, target)
    try:
        _empty(folder)
        try:
            yield folder
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise
        folder.rename(target)
        flush_to_disk(target, target.parent)
    finally:
        os.close(lock)


def _lock(folder: Path, target: Path) -> int:
    lock = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        os.close(lock)
        raise Conflict(f"Another backup is being written to {target}.") from error
    if _is_renamed(folder, lock):
        os.close(lock)
        raise Conflict(f"{target} exists: choose another name for the backup.")
    return lock


def _is_renamed(folder: Path, lock: int) -> bool:
    """Tell whether who held the lock before has finished, so that it is the target's by now."""
    try:
        return not os.path.samestat(os.fstat(lock), folder.stat())
    except FileNotFoundError:
        return True


def _empty(folder: Path) -> None:
    for found in folder.iterdir():
        if found.is_dir():
            shutil.rmtree(found)
        else:
            found.unlink()

"""The folder of a store on this machine: all that lies in it, and what no put has finished."""

import os
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from service.storage.artifact_keys import is_key, is_unfinished
from service.storage.stored_files import StoredFile


def files_in_folder(root: Path, prefix: str) -> Iterator[StoredFile]:
    """Yield the files below a folder, those that a put has not finished among them.

    All of a calibration come one after the other.
    """
    for path in _walk(root / prefix):
        name = path.relative_to(root).as_posix()
        if is_key(name) or is_unfinished(name):
            try:
                modified = path.stat().st_mtime
            except FileNotFoundError:  # it was deleted, or finished, just now
                continue
            yield StoredFile(name, datetime.fromtimestamp(modified, UTC))


def remove_unfinished(root: Path, name: str) -> None:
    """Delete what a put did not finish, and the folders that held nothing else.

    The library that wrote it knows it no more. A put that goes on in such a folder makes it again.
    """
    (root / name).unlink(missing_ok=True)
    for folder in list(Path(name).parents)[:-1]:
        try:
            (root / folder).rmdir()
        except OSError:  # it holds something else
            return


def _walk(folder: Path) -> Iterator[Path]:
    try:
        entries = os.scandir(folder)
    except (FileNotFoundError, NotADirectoryError):
        return
    with entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                yield from _walk(Path(entry.path))
            else:
                yield Path(entry.path)

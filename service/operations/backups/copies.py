"""Copies of stored files, each under its digest."""

import hashlib
import os
from collections.abc import Callable
from pathlib import Path

from service.errors import ArtifactDamaged
from service.operations.backups.parts import KeptFile
from service.storage.artifacts import ArtifactStore

CHUNK_BYTES = 2**20


class Copies:
    """The files that were copied so far; what a later cut names as well need not be copied anew."""

    def __init__(self, folder: Path, artifacts: ArtifactStore) -> None:
        self._folder = folder
        self._artifacts = artifacts
        folder.mkdir()

    def add(self, file: KeptFile, copied: Callable[[int], None]) -> bool:
        """Copy a file, telling of each number of bytes; False if it is gone or is not as stored."""
        path = self._folder / file.sha256
        if path.exists():
            copied(file.size)
            return True
        begun = path.with_suffix(".partial")
        try:
            with self._artifacts.unverified_path(file.key) as source:
                digest = _copy(source, begun, copied)
        except (ArtifactDamaged, FileNotFoundError):
            return False
        if digest != file.sha256:
            return False
        begun.rename(path)
        return True

    def keep(self, file: KeptFile, folder: Path) -> None:
        """Make a file that was copied a part of the backup in ``folder``."""
        path = self._folder / file.sha256
        if path.exists():  # another key may have had the same content
            path.rename(folder / file.path)


def _copy(source: Path, target: Path, copied: Callable[[int], None]) -> str:
    digest = hashlib.sha256()
    with source.open("rb") as reading, target.open("wb") as writing:
        while chunk := reading.read(CHUNK_BYTES):
            digest.update(chunk)
            writing.write(chunk)
            copied(len(chunk))
        writing.flush()
        os.fsync(writing.fileno())
    return digest.hexdigest()

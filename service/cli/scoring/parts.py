"""The parts of a result, in a folder beside it: each is there whole or not at all."""

import fcntl
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from service.cli.failure import CommandFailed
from service.cli.scoring.manifest import Manifest
from service.client.npz import Arrays, write_npz

MANIFEST = "manifest.json"
LOCK = "lock"


class Parts:
    """The folder, held by this process alone; removed at the end if no part was made."""

    def __init__(self, folder: Path, manifest: Manifest) -> None:
        self.folder = folder
        self.manifest = manifest

    @classmethod
    @contextmanager
    def opened(cls, folder: Path, manifest: Manifest, *, restart: bool) -> Iterator[Self]:
        """Go on with what lies in the folder, or begin.

        Raises
        ------
        CommandFailed
            If it was begun otherwise, unless it is to be begun anew, or somebody else is at it.
        """
        folder.mkdir(exist_ok=True)
        with (folder / LOCK).open("w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                raise CommandFailed(f"another process is writing {folder}") from error
            parts = cls(folder, manifest)
            if restart:
                parts._clear()
            parts._begin()
            try:
                yield parts
            finally:
                if not any(parts.is_made(part) for part in range(manifest.n_parts)):
                    parts.remove()

    def _begin(self) -> None:
        path = self.folder / MANIFEST
        if not path.exists():
            self._clear()
            self.write(MANIFEST, self.manifest.as_text().encode())
            return
        try:
            difference = self.manifest.differs_from(Manifest.read(path.read_text("utf-8")))
        except ValueError:
            difference = f"{MANIFEST} is none of this program"
        if difference is not None:
            raise CommandFailed(
                f"{self.folder} holds parts of something else: {difference}; --restart begins anew"
            )

    def is_made(self, part: int) -> bool:
        """Tell whether a part is there."""
        return self._path(part).exists()

    def n_rows_made(self) -> int:
        """Return how many rows the parts have that are there."""
        parts = range(self.manifest.n_parts)
        return sum(len(self.manifest.rows_of(part)) for part in parts if self.is_made(part))

    def keep(self, part: int, arrays: Arrays) -> None:
        """Write a part, so that it is there after a crash if it is there at all."""
        unfinished = self.folder / "part"
        with unfinished.open("wb") as file:
            write_npz(file, arrays)
        self.publish(unfinished, self._path(part))

    @contextmanager
    def reading(self, part: int) -> "Iterator[dict[str, NDArray[Any]]]":
        """Yield a part's arrays, each read when it is asked for."""
        with np.load(self._path(part), allow_pickle=False) as archive:
            yield archive

    def write(self, name: str, content: bytes) -> None:
        """Write a small file of the folder."""
        unfinished = self.folder / "part"
        unfinished.write_bytes(content)
        self.publish(unfinished, self.folder / name)

    @staticmethod
    def publish(unfinished: Path, path: Path) -> None:
        """Give a finished file its name, once its bytes are on the disk."""
        with unfinished.open("rb") as file:
            os.fsync(file.fileno())
        unfinished.replace(path)
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)

    def remove(self) -> None:
        """Remove the folder and all that is in it."""
        shutil.rmtree(self.folder, ignore_errors=True)

    def _clear(self) -> None:
        for path in self.folder.iterdir():
            if path.name != LOCK:
                path.unlink()

    def _path(self, part: int) -> Path:
        return self.folder / f"{part:08d}.npz"

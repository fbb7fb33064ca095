"""The parts of a result, in a folder beside it: each is complete or missing."""

import fcntl
import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from howsure.client.uploads import Arrays, write_npz
from service.cli.failure import CommandFailed

MANIFEST, LOCK, UNFINISHED = "manifest.json", "lock", "part"


@dataclass(frozen=True)
class Manifest:
    """The values that determine the content of the parts.

    Attributes
    ----------
    input_sha256
        SHA-256 of the file that is scored.
    calibration, calibration_id
        Its ``name@version``, and its id.
    rows_per_part
        Rows of each part except the last.
    n_rows
        Rows of all parts.
    """

    input_sha256: str
    calibration: str
    calibration_id: str
    rows_per_part: int
    n_rows: int
    format: int = 1

    @property
    def n_parts(self) -> int:
        """The number of parts of a complete result."""
        return -(-self.n_rows // self.rows_per_part)

    def rows_of(self, part: int) -> range:
        """Return the rows of a part."""
        start = part * self.rows_per_part
        return range(start, min(start + self.rows_per_part, self.n_rows))

    def require_same(self, path: Path) -> None:
        """Refuse the manifest of a run that would make other parts.

        Raises
        ------
        CommandFailed
            If the file differs; the message gives the first value that does.
        """
        try:
            begun = dict(json.loads(path.read_bytes()))
        except (ValueError, TypeError):
            begun = {}
        for name, value in asdict(self).items():
            if begun.get(name) != value:
                raise CommandFailed(
                    f"{path}: {name} is {begun.get(name)} there and {value} in this command. "
                    "Repeat the command that was stopped, or start again with --restart."
                )


class Parts:
    """The folder of the parts, locked by this process."""

    def __init__(self, folder: Path, manifest: Manifest) -> None:
        self.folder = folder
        self.manifest = manifest

    @classmethod
    @contextmanager
    def opened(cls, folder: Path, manifest: Manifest, *, restart: bool) -> Iterator[Self]:
        """Open the folder, to continue with its parts; it is removed at the end if it has none.

        Raises
        ------
        CommandFailed
            If another process writes to it, or if its parts are those of another run and
            ``restart`` is false.
        """
        folder.mkdir(exist_ok=True)
        with (folder / LOCK).open("w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                raise CommandFailed(f"another process is writing {folder}") from error
            parts = cls(folder, manifest)
            try:
                parts._begin(restart=restart)
                yield parts
            finally:
                if not parts.n_rows_made():
                    parts.remove()

    def _begin(self, *, restart: bool) -> None:
        path = self.folder / MANIFEST
        if not restart and path.exists():
            self.manifest.require_same(path)
            return
        for found in self.folder.iterdir():
            if found.name != LOCK:
                found.unlink()
        unfinished = self.folder / UNFINISHED
        unfinished.write_text(f"{json.dumps(asdict(self.manifest), indent=2)}\n", "utf-8")
        self.publish(unfinished, path)

    def is_made(self, part: int) -> bool:
        """Tell whether a part is there."""
        return self._path(part).exists()

    def n_rows_made(self) -> int:
        """Return the number of rows in the parts that are there."""
        parts = range(self.manifest.n_parts)
        return sum(len(self.manifest.rows_of(part)) for part in parts if self.is_made(part))

    def keep(self, part: int, arrays: Arrays) -> None:
        """Write a part; after a crash it is complete or missing."""
        unfinished = self.folder / UNFINISHED
        with unfinished.open("wb") as file:
            write_npz(file, arrays)
        self.publish(unfinished, self._path(part))

    @contextmanager
    def reading(self, part: int) -> "Iterator[dict[str, NDArray[Any]]]":
        """Yield a part's arrays, each read on access."""
        with np.load(self._path(part), allow_pickle=False) as archive:
            yield archive

    @staticmethod
    def publish(unfinished: Path, path: Path) -> None:
        """Rename a finished file once its content is on the disk."""
        _flush(unfinished)
        unfinished.replace(path)
        _flush(path.parent)

    def remove(self) -> None:
        """Remove the folder and its content."""
        shutil.rmtree(self.folder, ignore_errors=True)

    def _path(self, part: int) -> Path:
        return self.folder / f"{part:08d}.npz"


def _flush(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)

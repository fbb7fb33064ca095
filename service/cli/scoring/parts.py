"""The parts of a result, in a folder beside it: each is there whole or not at all."""

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

FORMAT = 1


@dataclass(frozen=True)
class Manifest:
    """The values that determine the content of the parts.

    Attributes
    ----------
    input_sha256
        Of the file that is scored.
    calibration_id, calibration
        Its id, and ``name@version``.
    rows_per_part
        Of each part but the last.
    n_rows
        Of all of them.
    """

    input_sha256: str
    calibration_id: str
    calibration: str
    rows_per_part: int
    n_rows: int

    @property
    def n_parts(self) -> int:
        """How many parts there will be."""
        return -(-self.n_rows // self.rows_per_part)

    def rows_of(self, part: int) -> range:
        """Return the rows of a part."""
        start = part * self.rows_per_part
        return range(start, min(start + self.rows_per_part, self.n_rows))

    def as_text(self) -> str:
        """Return the content of the file that keeps it."""
        return json.dumps({"format": FORMAT, **asdict(self)}, indent=2) + "\n"


def described(text: str) -> str:
    """Return a summary of a manifest for a message."""
    try:
        begun = json.loads(text)
        return f"{begun['calibration']}, --rows {begun['rows_per_part']}"
    except (ValueError, KeyError, TypeError):
        return "a manifest of another program"


MANIFEST = "manifest.json"
LOCK = "lock"


class Parts:
    """The folder, locked by this process; removed at the end if it has no part."""

    def __init__(self, folder: Path, manifest: Manifest) -> None:
        self.folder = folder
        self.manifest = manifest

    @classmethod
    @contextmanager
    def opened(cls, folder: Path, manifest: Manifest, *, restart: bool) -> Iterator[Self]:
        """Continue with the parts in the folder, or begin.

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
        path, text = self.folder / MANIFEST, self.manifest.as_text()
        if not path.exists():
            self._clear()
            self.write(MANIFEST, text.encode())
            return
        begun = path.read_text("utf-8", errors="replace")
        if begun != text:
            raise CommandFailed(
                f"{self.folder} holds parts of another calibration, --rows or another file: "
                f"{described(begun)}; this command uses {self.manifest.calibration}, "
                f"--rows {self.manifest.rows_per_part}. Repeat the command that was stopped, or "
                "start again with --restart."
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
        """Yield a part's arrays, each read on access."""
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

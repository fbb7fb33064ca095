"""Parts of a backup: files of lines with a digest, and stored files under theirs."""

import hashlib
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import msgspec

from service.errors import InvalidInput
from service.operations.backups.manifest import Manifest, Part, Sha256, damaged

FILES = "files"


@dataclass(frozen=True)
class KeptFile:
    """A file of the artifact store; its content lies in the backup under its digest."""

    key: str
    sha256: Sha256
    size: int

    @property
    def path(self) -> str:
        """Where its content lies within the backup."""
        return f"{FILES}/{self.sha256}"

    def line(self) -> bytes:
        """Return it as a line of the files' part."""
        return msgspec.json.encode(self)


def write_part(folder: Path, path: str, lines: Iterable[bytes]) -> Part:
    """Write lines, and wait until they are on the disk."""
    digest, count = hashlib.sha256(), 0
    (folder / path).parent.mkdir(exist_ok=True)
    with (folder / path).open("wb") as file:
        for line in lines:
            digest.update(line + b"\n")
            file.write(line + b"\n")
            count += 1
        file.flush()
        os.fsync(file.fileno())
    return Part(path, digest.hexdigest(), count)


def read_part(folder: Path, part: Part) -> Iterator[bytes]:
    """Yield the lines of a part.

    Raises
    ------
    InvalidInput
        If it is missing, or not what was written; at its end.
    """
    digest = hashlib.sha256()
    try:
        with (folder / part.path).open("rb") as file:
            for line in file:
                digest.update(line)
                yield line.rstrip(b"\n")
    except FileNotFoundError as error:
        raise missing(part.path) from error
    if digest.hexdigest() != part.sha256:
        raise damaged(part.path)


def read_files(folder: Path, manifest: Manifest) -> Iterator[KeptFile]:
    """Yield the stored files that a backup names; raises as `read_part` does."""
    path = manifest.files.part.path
    try:
        for line in read_part(folder, manifest.files.part):
            yield msgspec.json.decode(line, type=KeptFile)
    except msgspec.DecodeError as error:
        raise damaged(path) from error


def missing(path: str) -> InvalidInput:
    """Return the error of a part that is not there."""
    return InvalidInput.at(path, "this part of the backup is missing")

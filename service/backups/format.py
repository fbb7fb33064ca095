"""The manifest of a backup: its parts with their digests, and its own digest."""

import hashlib
import os
import stat
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from io import BufferedReader
from pathlib import Path
from typing import Annotated, TypeAlias

import msgspec

from service.backups.rows import ColumnKind
from service.errors import InvalidInput
from service.storage.artifact_keys import is_key

NAME = "manifest.json"
FORMAT = 1

Sha256: TypeAlias = Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{64}$")]
PartPath: TypeAlias = Annotated[str, msgspec.Meta(pattern=r"^(rows/)?[a-z0-9_]+\.jsonl$")]


@dataclass(frozen=True)
class Part:
    """A file of lines, by its path within the backup."""

    path: PartPath
    sha256: Sha256
    lines: int


@dataclass(frozen=True)
class TablePart:
    """The rows of a table; each line has the values of the columns, in their order."""

    name: str
    columns: dict[str, ColumnKind]
    part: Part


@dataclass(frozen=True)
class FilesPart:
    """The stored files, one line per key; ``bytes`` is the size of all of them."""

    part: Part
    bytes: int


@dataclass(frozen=True)
class Manifest:
    """A backup; each of ``tables`` refers only to earlier ones."""

    format: int
    program: str
    made_at: str
    revision: str
    tables: tuple[TablePart, ...]
    files: FilesPart

    def rows(self, table: str) -> int:
        """Return how many rows of a table it holds."""
        return sum(found.part.lines for found in self.tables if found.name == table)


@dataclass(frozen=True)
class _Sealed:
    manifest: msgspec.Raw
    sha256: Sha256


@dataclass(frozen=True)
class _Format:
    format: int


def sealed(manifest: Manifest) -> bytes:
    """Return the content of the manifest's file."""
    body = msgspec.json.encode(manifest)
    return msgspec.json.encode(_Sealed(msgspec.Raw(body), hashlib.sha256(body).hexdigest()))


def read_manifest(folder: Path) -> Manifest:
    """Return the manifest of the backup in a folder.

    Raises
    ------
    InvalidInput
        If there is none, it is damaged, or of a format that this version does not read.
    """
    if not (folder / NAME).exists():
        raise InvalidInput.at(str(folder), f"expected the folder of a whole backup, with a {NAME}")
    with open_part(folder, NAME) as file:
        content = file.read()
    try:
        found = msgspec.json.decode(content, type=_Sealed)
        body = bytes(found.manifest)
        if hashlib.sha256(body).hexdigest() != found.sha256:
            raise damaged(NAME)
        version = msgspec.json.decode(body, type=_Format).format
        if version != FORMAT:
            raise InvalidInput.at(
                NAME, f"expected format {FORMAT}, got {version}; restore it with a newer howsure"
            )
        return msgspec.json.decode(body, type=Manifest)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise damaged(NAME) from error


def damaged(path: str) -> InvalidInput:
    """Return the error for a part whose content has changed."""
    return InvalidInput.at(path, "this part of the backup is damaged: not what was written")


FILES = "files"


@dataclass(frozen=True)
class KeptFile:
    """A file of the artifact store; the backup stores its content under its digest."""

    key: str
    sha256: Sha256
    size: int

    @property
    def path(self) -> str:
        """Path of its content within the backup."""
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
        After the last line, if the part is missing or damaged.
    """
    digest = hashlib.sha256()
    with open_part(folder, part.path) as file:
        for line in file:
            digest.update(line)
            yield line.rstrip(b"\n")
    if digest.hexdigest() != part.sha256:
        raise damaged(part.path)


def read_files(folder: Path, manifest: Manifest) -> Iterator[KeptFile]:
    """Yield the stored files that a backup names; raises as `read_part` does."""
    path = manifest.files.part.path
    try:
        for line in read_part(folder, manifest.files.part):
            file = msgspec.json.decode(line, type=KeptFile)
            if not is_key(file.key):
                raise damaged(path)
            yield file
    except msgspec.DecodeError as error:
        raise damaged(path) from error


def open_part(folder: Path, path: str) -> BufferedReader:
    """Open a part, which must be a file: no link to another one, and nothing that waits.

    Raises
    ------
    InvalidInput
        If it is missing or something else.
    """
    if (folder / path).parent.is_symlink() and "/" in path:
        raise damaged(path)
    try:
        opened = os.open(folder / path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except FileNotFoundError as error:
        raise InvalidInput.at(path, "this part of the backup is missing") from error
    except OSError as error:
        raise InvalidInput.at(path, f"this part of the backup: {error.strerror}") from error
    if not stat.S_ISREG(os.fstat(opened).st_mode):
        os.close(opened)
        raise damaged(path)
    return os.fdopen(opened, "rb")

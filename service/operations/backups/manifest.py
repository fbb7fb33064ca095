"""The manifest: what a backup consists of, with the digest of every part and of itself."""

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, TypeAlias

import msgspec

from service.errors import InvalidInput
from service.storage.column_kinds import ColumnKind

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
    """The stored files: a line for each key; ``bytes`` are those of all, however often a key."""

    part: Part
    bytes: int


@dataclass(frozen=True)
class Manifest:
    """A whole backup; ``tables`` stand in the order in which they refer to one another."""

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
    try:
        content = (folder / NAME).read_bytes()
    except (FileNotFoundError, NotADirectoryError) as error:
        raise InvalidInput.at(
            str(folder), f"expected the folder of a whole backup, with a {NAME}"
        ) from error
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
    """Return the error of a part that is not what was written."""
    return InvalidInput.at(path, "this part of the backup is damaged: not what was written")

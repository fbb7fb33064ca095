"""The headers of a tar archive, one after the other: ustar, pax, GNU and what was before them.

``tarfile`` reads a long name or pax records of any length that a header claims, and keeps an
object of every member.
"""

import os
import re
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass

from service.datasets.pictures.member_names import member_place
from service.datasets.pictures.tar_block import BLOCK, TarBlock, read_tar_block
from service.errors import InvalidDataset, TooLarge

MAX_EXTENSION_BYTES = 1024**2

_PAX = (tarfile.XHDTYPE, tarfile.SOLARIS_XHDTYPE)
_LONG = (tarfile.GNUTYPE_LONGNAME, tarfile.GNUTYPE_LONGLINK)
_KINDS = {
    tarfile.LNKTYPE: "a hard link",
    tarfile.SYMTYPE: "a symbolic link",
    tarfile.CHRTYPE: "a device",
    tarfile.BLKTYPE: "a device",
    tarfile.FIFOTYPE: "a pipe",
    tarfile.GNUTYPE_SPARSE: "a file with holes",
}
_RECORD = re.compile(rb"([1-9][0-9]{0,6}) ")
_SIZE = re.compile(rb"[0-9]{1,18}")
_NEWLINE = 0x0A
_ENCODING = "utf-8", "surrogateescape"


@dataclass(frozen=True)
class TarMember:
    """A file or a folder: its name as it was written, and where its bytes lie."""

    name: str
    is_folder: bool
    offset: int
    size: int


def read_tar_headers(file: int, *, location: str) -> Iterator[TarMember]:
    """Yield the files and folders of a tar archive, given its descriptor, to the end.

    Raises
    ------
    InvalidDataset
        If the archive is cut off or damaged, or a member is neither file nor folder.
    TooLarge
        If what describes a member is longer than a name needs.
    """
    file_size = os.fstat(file).st_size
    offset, last = 0, ""
    records: dict[bytes, bytes] = {}
    while True:
        block = os.pread(file, BLOCK, offset)
        if block == bytes(BLOCK):
            _refuse_more(file, offset, location)
            return
        header = _header(block, offset, last, location)
        start = offset + BLOCK
        size = _size(header, records)
        name = records.get(b"path", header.name).decode(*_ENCODING)
        if not 0 <= size <= file_size - start:
            raise InvalidDataset.at(
                member_place(location, name),
                f"claims {size} bytes, more than the archive has left; send the file again",
            )
        offset = start + -(-size // BLOCK) * BLOCK
        if header.kind in (*_PAX, *_LONG, tarfile.XGLTYPE):
            _extend(records, header.kind, _extension(file, start, size, location), location)
            continue
        last = name
        yield _member(header, name, start, size, records, location)
        if header.kind == tarfile.DIRTYPE:
            offset = start  # whatever size it claims, a folder has no bytes
        records = {}


def _header(block: bytes, offset: int, last: str, location: str) -> TarBlock:
    after = f" after {member_place(location, last)}" if last else ""
    try:
        return read_tar_block(block)
    except ValueError as error:
        found = "damaged bytes" if len(block) == BLOCK else "one cut off"
        raise InvalidDataset.at(
            location,
            f"expected a whole tar archive, got {found} at byte {offset}{after}; "
            "send the file again",
        ) from error


def _size(header: TarBlock, records: dict[bytes, bytes]) -> int:
    extends = header.kind in (*_PAX, *_LONG, tarfile.XGLTYPE)
    claimed = records.get(b"size", b"")
    return int(claimed) if not extends and _SIZE.fullmatch(claimed) else header.size


def _extension(file: int, start: int, size: int, location: str) -> bytes:
    if size > MAX_EXTENSION_BYTES:
        raise TooLarge.at(
            location,
            f"expected at most {MAX_EXTENSION_BYTES} bytes that describe a member, got {size}",
        )
    return os.pread(file, size, start)


def _extend(records: dict[bytes, bytes], kind: bytes, content: bytes, location: str) -> None:
    """Keep what is said of the next member."""
    if kind == tarfile.GNUTYPE_LONGNAME:
        records[b"path"] = content.split(b"\0", 1)[0]
    elif kind in _PAX:
        records.update(_pax_records(content, location))
    elif kind == tarfile.XGLTYPE:
        said = _pax_records(content, location)
        if b"path" in said or b"size" in said:
            raise InvalidDataset.at(location, "expected names and sizes for each member alone")


def _pax_records(content: bytes, location: str) -> dict[bytes, bytes]:
    records: dict[bytes, bytes] = {}
    at = 0
    while at < len(content) and content[at]:
        length = _RECORD.match(content, at)
        end = at + int(length[1]) if length else 0
        if length is None or not length.end() < end <= len(content) or content[end - 1] != _NEWLINE:
            raise InvalidDataset.at(
                location, "expected a whole tar archive, got damaged pax records"
            )
        key, _, value = content[length.end() : end - 1].partition(b"=")
        records[key] = value
        at = end
    return records


def _member(
    header: TarBlock,
    name: str,
    start: int,
    size: int,
    records: dict[bytes, bytes],
    location: str,
) -> TarMember:
    is_folder = header.kind == tarfile.DIRTYPE
    kind = _KINDS.get(header.kind, "a member of another kind")
    if any(key.startswith(b"GNU.sparse.") for key in records):
        kind = _KINDS[tarfile.GNUTYPE_SPARSE]
    elif is_folder or header.kind == tarfile.REGTYPE:
        return TarMember(name.rstrip("/") if is_folder else name, is_folder, start, size)
    raise InvalidDataset.at(
        member_place(location, name), f"expected plain files and folders, got {kind}"
    )


def _refuse_more(file: int, offset: int, location: str) -> None:
    """Refuse what lies behind the end, such as another archive: it would be left out unseen."""
    chunk = bytes(1)
    while chunk:
        chunk = os.pread(file, MAX_EXTENSION_BYTES, offset)
        if chunk.count(0) != len(chunk):
            raise InvalidDataset.at(
                location,
                f"expected one tar archive, got more behind its end at byte {offset}; "
                "pack all the pictures into one",
            )
        offset += len(chunk)

"""The entries of a zip archive's directory, one after the other, without an object kept of each."""

import struct
from collections.abc import Iterator
from dataclasses import dataclass

from service.errors import InvalidDataset

_ENTRY = struct.Struct("<4s6H3L5H2L")
_SIGNATURE = b"PK\x01\x02"
_EXTRA = struct.Struct("<2H")
_WIDE = struct.Struct("<Q")
_ZIP64 = 1
_IN_ZIP64 = 0xFFFFFFFF
_UTF8 = 0x800


@dataclass(frozen=True)
class ZipEntry:
    """What the directory claims of a member."""

    name: str
    flags: int
    method: int
    checksum: int
    compressed_size: int
    size: int
    attributes: int
    offset: int


def read_zip_entries(directory: bytes, *, location: str) -> Iterator[ZipEntry]:
    """Yield the entries of a central directory, which must fill it.

    Raises
    ------
    InvalidDataset
        If it is damaged.
    """
    at = 0
    while at < len(directory):
        try:
            entry, at = _entry(directory, at)
        except (struct.error, ValueError) as error:
            raise InvalidDataset.at(
                location,
                f"expected a whole zip archive, got a directory damaged at byte {at} of it; "
                "send the file again",
            ) from error
        yield entry


def _entry(directory: bytes, at: int) -> tuple[ZipEntry, int]:
    fields = _ENTRY.unpack_from(directory, at)
    if fields[0] != _SIGNATURE:
        raise ValueError("no entry begins here")
    name_end = at + _ENTRY.size + fields[10]
    extra_end = name_end + fields[11]
    end = extra_end + fields[12]
    if end > len(directory):
        raise ValueError("the entry is longer than the directory")
    flags = fields[3]
    encoded = directory[at + _ENTRY.size : name_end]
    name = encoded.decode(*("utf-8", "surrogateescape") if flags & _UTF8 else ("cp437",))
    size, compressed, offset = _wide(
        (fields[9], fields[8], fields[16]), directory[name_end:extra_end]
    )
    return ZipEntry(name, flags, fields[4], fields[7], compressed, size, fields[15], offset), end


def _wide(fields: tuple[int, int, int], extra: bytes) -> list[int]:
    """Return size, compressed size and offset, those that do not fit from where they then stand."""
    at = 0
    values: list[int] = list(fields)
    while _IN_ZIP64 in fields and at < len(extra):
        kind, length = _EXTRA.unpack_from(extra, at)
        at += _EXTRA.size
        if kind == _ZIP64:
            for index, field in enumerate(fields):
                if field == _IN_ZIP64:
                    (values[index],) = _WIDE.unpack_from(extra, at)
                    at += _WIDE.size
            return values
        at += length
    return values

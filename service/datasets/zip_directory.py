"""The end of a zip archive, read before ``zipfile`` reads the directory it points to.

``zipfile`` makes an object of every entry the directory claims, and an upload may be nothing but
directory. So its size is bounded first, and archives whose end can be read in two ways are refused.
"""

import os
import struct
from dataclasses import dataclass
from typing import BinaryIO

from service.errors import InvalidDataset, TooLarge

MAX_DIRECTORY_BYTES = 256 * 1024

_END = struct.Struct("<4s4H2LH")
_END64_LOCATOR = struct.Struct("<4sLQL")
_END64 = struct.Struct("<4sQ2H2L4Q")
_LOCAL = struct.Struct("<4s5H3L2H")


@dataclass(frozen=True)
class ZipKind:
    """What an archive is called in messages, and how long its directory may be."""

    called: str
    written_by: str
    max_directory_bytes: int
    instead: str


NPZ = ZipKind(".npz archive", "numpy.savez writes it", MAX_DIRECTORY_BYTES, "send fewer arrays")


@dataclass(frozen=True)
class ZipDirectory:
    """Where the central directory begins and how long it is."""

    offset: int
    size: int


def read_zip_directory(file: BinaryIO, *, location: str, kind: ZipKind = NPZ) -> ZipDirectory:
    """Return the place of the central directory, which must end where its end records begin.

    Raises
    ------
    InvalidDataset
        If the archive is cut off, carries a comment, spans several disks or has bytes before or
        behind it.
    TooLarge
        If the directory is longer than an archive of its kind needs.
    """
    file_size = file.seek(0, os.SEEK_END)
    end = file_size - _END.size
    fields = _read(file, end, _END, b"PK\x05\x06")
    if fields is None:
        raise InvalidDataset.at(
            location,
            f"expected a whole {kind.called}, got one cut off or with bytes behind its end",
        )
    disk, start_disk, size, offset, comment = fields[1], fields[2], fields[5], fields[6], fields[7]
    locator = _read(file, end - _END64_LOCATOR.size, _END64_LOCATOR, b"PK\x06\x07")
    if locator is not None:
        end -= _END64_LOCATOR.size + _END64.size
        large = _read(file, end, _END64, b"PK\x06\x06")
        if large is None or locator[2] != end:
            raise InvalidDataset.at(location, f"expected a whole {kind.called}, got a damaged end")
        disk, start_disk, size, offset = large[4], large[5], large[8], large[9]
    if disk or start_disk or comment:
        raise InvalidDataset.at(
            location, f"expected a plain {kind.called} as {kind.written_by}, without a comment"
        )
    if size > kind.max_directory_bytes:
        raise TooLarge.at(
            location,
            f"expected a directory of at most {kind.max_directory_bytes} bytes, got {size}; "
            f"{kind.instead}",
        )
    if offset + size != end:
        raise InvalidDataset.at(
            location,
            f"expected a whole {kind.called}, got a directory that does not meet its end",
        )
    return ZipDirectory(offset, size)


def data_end(file: BinaryIO, *, header_offset: int, compressed_size: int) -> int | None:
    """Return where a member's compressed bytes end, or None where no member begins."""
    fields = _read(file, header_offset, _LOCAL, b"PK\x03\x04")
    if fields is None:
        return None
    name_size, extra_size = fields[9], fields[10]
    return header_offset + _LOCAL.size + name_size + extra_size + compressed_size


def _read(
    file: BinaryIO, offset: int, layout: struct.Struct, signature: bytes
) -> tuple[int, ...] | None:
    if offset < 0:
        return None
    file.seek(offset)
    data = file.read(layout.size)
    if len(data) != layout.size or not data.startswith(signature):
        return None
    fields: tuple[int, ...] = layout.unpack(data)
    return fields

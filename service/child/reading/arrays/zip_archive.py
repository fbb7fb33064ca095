"""Uploaded zip archives, read by `zipfile`, with additional checks."""

import os
import stat
import zipfile
from collections.abc import Callable
from typing import IO, BinaryIO

import numpy as np

from service.child.reading.set_file import refuse_damage
from service.errors import InvalidDataset, TooLarge
from service.runner.messages.dataset import AnyArray

MAGIC = (b"PK\x03\x04", b"PK\x05\x06")

# One read of a deflated member takes twice as much memory as it is asked for.
_CHUNK_BYTES = 256 * 1024
_ENCRYPTED_OR_PATCHED = 0x1 | 0x20 | 0x40
_END_MAGIC, _END_BYTES = b"PK\x05\x06", 22
_LOCAL_HEADER_BYTES = 30
_UNIX_MODE = 16


class ZipArchive:
    """An archive of plain members that do not overlap; ``place`` names a member in messages."""

    def __init__(
        self,
        file: BinaryIO,
        *,
        location: str,
        max_inflated_bytes: int,
        place: Callable[[zipfile.ZipInfo], str],
    ) -> None:
        self._place = place
        with refuse_damage(location):
            file.seek(-_END_BYTES, os.SEEK_END)
            ends = file.read(_END_BYTES).startswith(_END_MAGIC)
            self._zip = zipfile.ZipFile(file)
        self.members = self._zip.infolist()
        ordered = sorted(self.members, key=lambda member: member.header_offset)
        begins = [*(member.header_offset for member in ordered), self._zip.start_dir]
        if begins[0] != 0 or self._zip.comment or not ends:
            raise InvalidDataset.at(
                location,
                "expected a whole archive, got one cut off, or with a comment or bytes around it",
            )
        for member, next_begin in zip(ordered, begins[1:], strict=True):
            if fault := _fault(member, next_begin):
                raise InvalidDataset.at(place(member), fault)
        inflated = sum(member.file_size for member in self.members)
        if inflated > max_inflated_bytes:
            raise TooLarge.at(
                location,
                f"expected at most {max_inflated_bytes} bytes when unpacked, got {inflated}",
            )

    def open(self, member: zipfile.ZipInfo) -> IO[bytes]:
        """Return the bytes of a member; several may be open at once, also in several threads."""
        with refuse_damage(self._place(member)):
            return self._zip.open(member)


def _fault(member: zipfile.ZipInfo, next_begin: int) -> str:
    """Return the fault of a member, or ""; the next member begins at ``next_begin``.

    Python before 3.11.8 does not check for overlapping members.
    """
    header_bytes = _LOCAL_HEADER_BYTES + len(member.orig_filename)
    end = member.header_offset + header_bytes + member.compress_size
    is_stored = member.compress_type == zipfile.ZIP_STORED
    is_read = is_stored or member.compress_type == zipfile.ZIP_DEFLATED
    is_link = stat.S_ISLNK(member.external_attr >> _UNIX_MODE)
    faults = (
        (end > next_begin, "shares bytes with another member of the archive"),
        (member.orig_filename != member.filename, "expected a plain name in UTF-8"),
        (member.flag_bits & _ENCRYPTED_OR_PATCHED, "expected a member without encryption"),
        (not is_read, "expected a member stored or deflated"),
        (is_link, "expected a plain file or folder, got a symbolic link"),
        (
            is_stored and member.file_size != member.compress_size,
            f"claims {member.file_size} bytes, but has {member.compress_size}",
        ),
    )
    return next((fault for is_found, fault in faults if is_found), "")


def read_into(stream: IO[bytes], target: AnyArray, place: str) -> None:
    """Fill an array with bytes; reading the end of a member verifies its checksum."""
    left = target.reshape(-1).view(np.uint8)
    while len(left):
        with refuse_damage(place):
            chunk = stream.read(min(len(left), _CHUNK_BYTES))
        if not chunk:
            raise InvalidDataset.at(
                place, "expected as many bytes as it claims; write the file again"
            )
        left[: len(chunk)] = np.frombuffer(chunk, np.uint8)
        left = left[len(chunk) :]


def is_torch(head: bytes) -> bool:
    """Tell whether a file begins as ``torch.save`` writes it: a zip archive around a pickle."""
    return head.startswith(MAGIC) and first_name(head).endswith("/data.pkl")


def first_name(head: bytes) -> str:
    """Return the name of the first member of a zip archive, from the header before its bytes."""
    length = int.from_bytes(head[26:28], "little")
    return head[30 : 30 + length].decode("utf-8", "replace")

"""Uploaded zip archives, read by `zipfile`: what it does not check is checked here."""

import stat
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import IO, BinaryIO

import numpy as np
from numpy.typing import NDArray

from service.errors import InvalidDataset, TooLarge

# One read of a deflated member takes twice as much memory as it is asked for.
CHUNK_BYTES = 1024**2
MAGIC = (b"PK\x03\x04", b"PK\x05\x06")

_TORCH_SUFFIX = "/data.pkl"
_ENCRYPTED_OR_PATCHED = 0x1 | 0x20 | 0x40
_END_MAGIC, _END_BYTES = b"PK\x05\x06", 22
_LOCAL_HEADER_BYTES = 30
_UNIX_MODE = 16


@dataclass(frozen=True)
class ZipKind:
    """What an archive is called in messages, and how long its directory may be.

    ``zipfile`` makes an object of each entry of the directory.
    """

    called: str
    max_directory_bytes: int
    instead: str

    def too_long(self, location: str) -> TooLarge:
        """Return the error for a directory that is longer."""
        return TooLarge.at(
            location,
            f"expected a directory of at most {self.max_directory_bytes} bytes, got a longer one; "
            f"{self.instead}",
        )


@contextmanager
def refuse_damage(place: str, called: str) -> Iterator[None]:
    """Turn what reading a broken archive raises into a violation at ``place``."""
    try:
        yield
    except (
        zipfile.BadZipFile,
        zlib.error,
        struct.error,
        EOFError,
        NotImplementedError,
        OSError,
        RuntimeError,
        ValueError,
        OverflowError,
    ) as error:
        raise InvalidDataset.at(
            place, f"expected a whole {called}, got damaged bytes; send the file again"
        ) from error


class MemberStream:
    """Bytes that are read to the last: of a file, or of a member of an archive.

    The last bytes of a member come out only if its checksum holds.
    """

    def __init__(self, stream: IO[bytes], place: str, called: str = "file") -> None:
        self._stream = stream
        self._place = place
        self._called = called

    def read_up_to(self, size: int) -> bytes:
        """Return ``size`` bytes, fewer at the end; at most 1 MiB."""
        with refuse_damage(self._place, self._called):
            return self._stream.read(min(size, CHUNK_BYTES))

    def read(self, size: int) -> bytes:
        """Return exactly ``size`` bytes."""
        target = np.empty(size, np.uint8)
        self.read_into(target)
        return target.tobytes()

    def read_into(self, target: NDArray[np.uint8]) -> None:
        """Fill ``target``."""
        filled = 0
        while filled < len(target):
            chunk = self.read_up_to(len(target) - filled)
            if not chunk:
                raise InvalidDataset.at(
                    self._place, "expected as many bytes as are claimed; send the file again"
                )
            target[filled : filled + len(chunk)] = np.frombuffer(chunk, np.uint8)
            filled += len(chunk)

    def close(self) -> None:
        """Let go of the member."""
        self._stream.close()


class ZipArchive:
    """An archive of plain members that share no bytes; ``place`` names a member in messages."""

    def __init__(
        self,
        file: BinaryIO,
        *,
        location: str,
        kind: ZipKind,
        max_inflated_bytes: int,
        place: Callable[[zipfile.ZipInfo], str],
    ) -> None:
        self._kind = kind
        self._location = location
        self._place = place
        with refuse_damage(location, kind.called):
            file.seek(-_END_BYTES, 2)
            ends = file.read(_END_BYTES).startswith(_END_MAGIC)
            self._zip = zipfile.ZipFile(file)
        if self._zip.comment or not ends:
            raise InvalidDataset.at(
                location,
                f"expected a whole {kind.called} without a comment, got one cut off or with bytes "
                "behind its end",
            )
        self.members = self._zip.infolist()
        self._refuse_overlap()
        for member in self.members:
            self._check(member)
        inflated = sum(member.file_size for member in self.members)
        if inflated > max_inflated_bytes:
            raise TooLarge.at(
                location,
                f"expected at most {max_inflated_bytes} bytes when unpacked, got {inflated}",
            )

    def open(self, member: zipfile.ZipInfo) -> MemberStream:
        """Return the bytes of a member; several may be open at once, also in several threads."""
        place = self._place(member)
        with refuse_damage(place, self._kind.called):
            return MemberStream(self._zip.open(member), place, self._kind.called)

    def close(self) -> None:
        """Let go of the archive, whose file is not its own."""
        self._zip.close()

    def _refuse_overlap(self) -> None:
        """Refuse members that share bytes: Python before 3.11.8 does not look."""
        ordered = sorted(self.members, key=lambda member: member.header_offset)
        begin = ordered[0].header_offset if ordered else self._zip.start_dir
        if begin != 0:
            raise InvalidDataset.at(
                self._location, f"expected a whole {self._kind.called}, got bytes before it"
            )
        ends = [
            member.header_offset
            + _LOCAL_HEADER_BYTES
            + len(member.orig_filename)
            + member.compress_size
            for member in ordered
        ]
        begins = [*(member.header_offset for member in ordered), self._zip.start_dir][1:]
        for member, end, next_begin in zip(ordered, ends, begins, strict=True):
            if end > next_begin:
                raise InvalidDataset.at(
                    self._place(member), "shares bytes with another member of the archive"
                )

    def _check(self, member: zipfile.ZipInfo) -> None:
        place = self._place(member)
        if member.flag_bits & _ENCRYPTED_OR_PATCHED:
            raise InvalidDataset.at(place, "expected a member without encryption")
        if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise InvalidDataset.at(place, "expected a member stored or deflated")
        if stat.S_ISLNK(member.external_attr >> _UNIX_MODE):
            raise InvalidDataset.at(place, "expected plain files and folders, got a symbolic link")
        if member.compress_type == zipfile.ZIP_STORED and member.file_size != member.compress_size:
            raise InvalidDataset.at(
                place,
                f"claims {member.file_size} bytes, which its {member.compress_size} stored bytes "
                "are not",
            )


def is_torch(head: bytes) -> bool:
    """Tell whether bytes begin as what ``torch.save`` writes: a zip archive around a pickle."""
    return head.startswith(MAGIC) and first_name(head).endswith(_TORCH_SUFFIX)


def first_name(head: bytes) -> str:
    """Return the name of the first member of a zip archive, as its own header has it."""
    length = int.from_bytes(head[26:28], "little")
    return head[30 : 30 + length].decode("utf-8", "replace")

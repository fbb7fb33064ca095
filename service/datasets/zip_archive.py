"""The members of an uploaded zip archive, as streams: never extracted, never trusted.

Nothing in an archive is believed twice. Names are labels, sizes are claims that are held against
the bytes that really come out, and a member that shares bytes with another is a bomb.
"""

import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, BinaryIO

import numpy as np
from numpy.typing import NDArray

from service.datasets.limits import DatasetLimits
from service.datasets.zip_directory import ZipDirectory, data_end, read_zip_directory
from service.errors import InvalidDataset, TooLarge

CHUNK_BYTES = 1024**2
SUFFIX = ".npy"

ENCRYPTED_OR_PATCHED = 0x1 | 0x20 | 0x40
# Deflate never reaches this; bzip2 and lzma pass it by far, and inflate a chunk without a bound.
MAX_DEFLATE_RATIO = 1040
_MAX_NAME_LENGTH = 200


@contextmanager
def refuse_damage(place: str) -> Iterator[None]:
    """Turn what reading a broken archive raises into a violation at ``place``."""
    try:
        yield
    except (
        zipfile.BadZipFile,
        zlib.error,
        EOFError,
        NotImplementedError,
        RuntimeError,
        ValueError,
        OverflowError,
    ) as error:
        raise InvalidDataset.at(
            place, "expected a whole .npz archive, got damaged bytes; send the file again"
        ) from error


class MemberStream:
    """The inflated bytes of one member, no more and no fewer than it claims.

    The last of them comes out only if the checksum holds: ``zipfile`` compares it then.
    """

    def __init__(self, stream: IO[bytes], size: int, place: str) -> None:
        self._stream = stream
        self._left = size
        self._place = place

    def read(self, size: int) -> bytes:
        """Return exactly ``size`` bytes."""
        chunks: list[bytes] = []
        while size:
            chunk = self._chunk(size)
            chunks.append(chunk)
            size -= len(chunk)
        return b"".join(chunks)

    def read_into(self, target: NDArray[np.uint8]) -> None:
        """Fill ``target``."""
        filled = 0
        while filled < len(target):
            chunk = self._chunk(len(target) - filled)
            target[filled : filled + len(chunk)] = np.frombuffer(chunk, np.uint8)
            filled += len(chunk)

    def close(self) -> None:
        """Let go of the member."""
        self._stream.close()

    def _chunk(self, size: int) -> bytes:
        with refuse_damage(self._place):
            chunk = self._stream.read(min(size, CHUNK_BYTES))
        self._left -= len(chunk)
        if not chunk or self._left < 0:
            raise InvalidDataset.at(
                self._place, "expected as many bytes as the array claims; send the file again"
            )
        return chunk


class ZipArchive:
    """An archive whose directory has been checked: plain members, none twice, none shared.

    The file is its own from the start, and is closed with it.
    """

    def __init__(self, file: BinaryIO, *, location: str, limits: DatasetLimits) -> None:
        self._location = location
        self._file = file
        try:
            directory = read_zip_directory(self._file, location=location)
            with refuse_damage(location):
                self._zip = zipfile.ZipFile(self._file)
            self._members = self._checked_members()
            self._refuse_overlap(directory)
            self._refuse_bomb(limits)
        except BaseException:
            self._file.close()
            raise

    @property
    def sizes(self) -> dict[str, int]:
        """Inflated bytes of each array, by its name."""
        return {name: info.file_size for name, info in self._members.items()}

    def open(self, name: str) -> MemberStream:
        """Return the bytes of an array's file; several may be open at once."""
        if self._file.closed:
            raise ValueError("the set is closed")
        place = f"{self._location}.{name}"
        info = self._members[name]
        with refuse_damage(place):
            return MemberStream(self._zip.open(info), info.file_size, place)

    def close(self) -> None:
        """Let go of the file."""
        self._zip.close()
        self._file.close()

    def _checked_members(self) -> dict[str, zipfile.ZipInfo]:
        members: dict[str, zipfile.ZipInfo] = {}
        for info in self._zip.infolist():
            name = _array_name(info, location=self._location)
            place = f"{self._location}.{name}"
            if name in members:
                raise InvalidDataset.at(place, "expected each array once, got it twice")
            if info.flag_bits & ENCRYPTED_OR_PATCHED:
                raise InvalidDataset.at(place, "expected an array without encryption")
            if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
                raise InvalidDataset.at(
                    place, "expected a member stored or deflated, as numpy.savez writes it"
                )
            most = info.compress_size
            if info.compress_type == zipfile.ZIP_DEFLATED:
                most *= MAX_DEFLATE_RATIO
            if info.file_size > most:
                raise InvalidDataset.at(
                    place,
                    f"claims {info.file_size} bytes, more than its {info.compress_size} "
                    "compressed bytes can hold",
                )
            members[name] = info
        return members

    def _refuse_bomb(self, limits: DatasetLimits) -> None:
        inflated = sum(info.file_size for info in self._members.values())
        if inflated > limits.max_inflated_bytes:
            raise TooLarge.at(
                self._location,
                f"expected at most {limits.max_inflated_bytes} bytes of arrays, got {inflated}",
            )

    def _refuse_overlap(self, directory: ZipDirectory) -> None:
        """Refuse members that share bytes: Python before 3.11.8 does not look."""
        previous_end = 0
        for name, info in sorted(self._members.items(), key=lambda item: item[1].header_offset):
            end = data_end(
                self._file, header_offset=info.header_offset, compressed_size=info.compress_size
            )
            if end is None or info.header_offset < previous_end or end > directory.offset:
                raise InvalidDataset.at(
                    f"{self._location}.{name}", "expected a member with bytes of its own"
                )
            previous_end = end


def _array_name(info: zipfile.ZipInfo, *, location: str) -> str:
    """Return the array's name, which is a label: a model's input may be called ``block/x:0``."""
    name = info.filename
    shown = ascii(name[:_MAX_NAME_LENGTH])
    if not name.endswith(SUFFIX) or name == SUFFIX:
        raise InvalidDataset.at(
            location, f"expected .npy arrays and nothing else, got the member {shown}"
        )
    name = name.removesuffix(SUFFIX)
    if (
        len(name) > _MAX_NAME_LENGTH
        or info.orig_filename != info.filename
        or not name.isprintable()
        or "\\" in name
        or any(part in ("", ".", "..") for part in name.split("/"))
    ):
        raise InvalidDataset.at(
            location, f"expected members with the plain names of arrays, got {shown}"
        )
    return name

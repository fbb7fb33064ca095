"""The files of an uploaded zip archive of pictures, each read where it lies.

``zipfile`` keeps an object of every member: too much for the hundred thousands that pictures are.
"""

import os
import stat
import zipfile
import zlib
from array import array
from pathlib import Path

import numpy as np

from service.datasets.pictures.archive import check_n_members, refuse_long_member
from service.datasets.pictures.member_names import MemberNames, member_place, plain_name
from service.datasets.pictures.zip_entries import ZipEntry, read_zip_entries
from service.datasets.zip_archive import ENCRYPTED_OR_PATCHED, MAX_DEFLATE_RATIO
from service.datasets.zip_directory import ZipDirectory, ZipKind, data_end, read_zip_directory
from service.errors import InvalidDataset, TooLarge

ZIP = ZipKind("zip archive", "zip writes it", 32 * 1024**2, "pack the pictures into a .tar")

_UNIX_MODE = 16
# Deflate's end, and the header of a block, of members of next to no bytes.
_SLACK_BYTES = 64


class ZipPictures:
    """A zip archive whose directory has been read and checked."""

    def __init__(self, path: Path, *, location: str, max_inflated_bytes: int) -> None:
        self.location = location
        self.names = MemberNames()
        self.folders = MemberNames()
        self._offsets = array("Q")
        self._compressed = array("Q")
        self._sizes = array("Q")
        self._checksums = array("L")
        self._methods = array("B")
        self._file = path.open("rb", buffering=0)
        try:
            directory = read_zip_directory(self._file, location=location, kind=ZIP)
            self._read_entries(directory)
            self._find_data(directory)
            self._refuse_bomb(max_inflated_bytes)
        except BaseException:
            self._file.close()
            raise

    def size(self, position: int) -> int:
        """Return the bytes that a file claims to have."""
        return self._sizes[position]

    def read(self, position: int) -> bytes:
        """Return a file; several threads may read at once.

        Raises
        ------
        InvalidDataset
            If it is not what the directory claims, in length or checksum.
        """
        if self._file.closed:
            raise ValueError("the set is closed")
        refuse_long_member(self, position)
        packed = os.pread(self._file.fileno(), self._compressed[position], self._offsets[position])
        content = packed
        if self._methods[position] == zipfile.ZIP_DEFLATED:
            content = self._inflated(packed, position)
        if (
            len(content) != self._sizes[position]
            or zlib.crc32(content) != self._checksums[position]
        ):
            raise self._damaged(position)
        return content

    def close(self) -> None:
        """Let go of the archive."""
        self._file.close()

    def _inflated(self, packed: bytes, position: int) -> bytes:
        inflater = zlib.decompressobj(-zlib.MAX_WBITS)
        try:
            # One more than is claimed, so that what goes on is seen and not made.
            return inflater.decompress(packed, self._sizes[position] + 1)
        except zlib.error as error:
            raise self._damaged(position) from error

    def _damaged(self, position: int) -> InvalidDataset:
        return InvalidDataset.at(
            member_place(self.location, self.names[position]),
            "expected as many bytes as the archive claims, with their checksum; "
            "send the file again",
        )

    def _read_entries(self, directory: ZipDirectory) -> None:
        entries = os.pread(self._file.fileno(), directory.size, directory.offset)
        for entry in read_zip_entries(entries, location=self.location):
            name = plain_name(entry.name.removesuffix("/"), location=self.location)
            if entry.name.endswith("/"):
                self.folders.append(name, location=self.location)
                continue
            _check_entry(entry, member_place(self.location, name))
            self.names.append(name, location=self.location)
            self._offsets.append(entry.offset)
            self._compressed.append(entry.compressed_size)
            self._sizes.append(entry.size)
            self._checksums.append(entry.checksum)
            self._methods.append(entry.method)
        check_n_members(len(self.names) + len(self.folders), location=self.location)
        self.names.close(location=self.location)

    def _refuse_bomb(self, most: int) -> None:
        inflated = sum(self._sizes)
        if inflated > most:
            raise TooLarge.at(self.location, f"expected at most {most} bytes, got {inflated}")

    def _find_data(self, directory: ZipDirectory) -> None:
        """Find where the bytes of each file begin, which must be no other's."""
        previous_end = 0
        for position in np.argsort(np.frombuffer(self._offsets, np.uint64), kind="stable"):
            offset, size = self._offsets[position], self._compressed[position]
            end = data_end(self._file, header_offset=offset, compressed_size=size)
            if end is None or offset < previous_end or end > directory.offset:
                raise InvalidDataset.at(
                    member_place(self.location, self.names[position]),
                    "expected a member with bytes of its own",
                )
            self._offsets[position] = end - size
            previous_end = end


def _check_entry(entry: ZipEntry, place: str) -> None:
    if entry.flags & ENCRYPTED_OR_PATCHED:
        raise InvalidDataset.at(place, "expected a file without encryption")
    if entry.method not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise InvalidDataset.at(place, "expected a file stored or deflated; use `zip -0`")
    if stat.S_ISLNK(entry.attributes >> _UNIX_MODE):
        raise InvalidDataset.at(place, "expected plain files and folders, got a symbolic link")
    if entry.method == zipfile.ZIP_STORED:
        fits = entry.size == entry.compressed_size
    else:
        most = entry.compressed_size * MAX_DEFLATE_RATIO
        fits = entry.size <= most and entry.compressed_size <= 2 * entry.size + _SLACK_BYTES
    if not fits:
        raise InvalidDataset.at(
            place,
            f"claims {entry.size} bytes, which its {entry.compressed_size} "
            "compressed bytes cannot hold",
        )

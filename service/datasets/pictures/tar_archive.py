"""The files of an uploaded tar archive, not compressed, each read where it lies."""

import os
from array import array
from pathlib import Path

from service.datasets.pictures.archive import check_n_members, refuse_long_member
from service.datasets.pictures.member_names import MemberNames, plain_name
from service.datasets.pictures.tar_block import BLOCK, read_tar_block
from service.datasets.pictures.tar_headers import read_tar_headers

_MAGIC_OFFSET = 257
_MAGIC = b"ustar"


def is_tar(head: bytes, _path: Path) -> bool:
    """Tell whether a file is a tar archive: by its magic, or the checksum of those without one."""
    if head[_MAGIC_OFFSET:].startswith(_MAGIC):
        return True
    try:
        return read_tar_block(head[:BLOCK]).name != b""
    except ValueError:
        return False


class TarArchive:
    """A tar archive whose headers have all been read and checked."""

    def __init__(self, path: Path, *, location: str) -> None:
        self.location = location
        self.names = MemberNames()
        self.folders = MemberNames()
        self._offsets = array("Q")
        self._sizes = array("Q")
        self._file = path.open("rb", buffering=0)
        try:
            self._read_headers()
        except BaseException:
            self._file.close()
            raise

    def size(self, position: int) -> int:
        """Return the bytes of a file."""
        return self._sizes[position]

    def read(self, position: int) -> bytes:
        """Return a file; several threads may read at once."""
        if self._file.closed:
            raise ValueError("the set is closed")
        refuse_long_member(self, position)
        return os.pread(self._file.fileno(), self._sizes[position], self._offsets[position])

    def close(self) -> None:
        """Let go of the archive."""
        self._file.close()

    def _read_headers(self) -> None:
        for member in read_tar_headers(self._file.fileno(), location=self.location):
            if member.is_folder:
                if member.name not in ("", "."):
                    folder = plain_name(member.name, location=self.location)
                    self.folders.append(folder, location=self.location)
            else:
                name = plain_name(member.name, location=self.location)
                self.names.append(name, location=self.location)
                self._offsets.append(member.offset)
                self._sizes.append(member.size)
            check_n_members(len(self.names) + len(self.folders), location=self.location)
        self.names.close(location=self.location)

"""Archives of pictures: the plain files of a zip or tar archive, which is never extracted."""

import tarfile
import zipfile
from collections.abc import Iterator
from typing import TypeAlias

import numpy as np

from service.child.reading.arrays.zip_archive import ZipArchive, read_into
from service.child.reading.checks import is_plain_name
from service.child.reading.set_file import SetFile, refuse_damage
from service.errors import SHOWN_CHARACTERS, InvalidDataset, TooLarge, shown
from service.runner.messages.limits import MEBIBYTE
from service.runner.messages.reading import SetContext

MAX_MEMBER_BYTES = 64 * MEBIBYTE
MAX_MEMBERS = 1_000_000
MAX_NAME_BYTES = 1024
# Of a zip archive; `zipfile` makes an object of each entry.
MAX_DIRECTORY_BYTES = 128 * MEBIBYTE
# Bytes that describe one member of a tar archive besides its header.
MAX_EXTENSION_BYTES = MEBIBYTE

_BLOCK = 512
_KINDS = {
    tarfile.LNKTYPE: "a hard link",
    tarfile.SYMTYPE: "a symbolic link",
    tarfile.CHRTYPE: "a device",
    tarfile.BLKTYPE: "a device",
    tarfile.FIFOTYPE: "a pipe",
}
_PLAIN = (tarfile.REGTYPE, tarfile.AREGTYPE, tarfile.DIRTYPE)
_SPARSE = "GNU.sparse."


def member_place(location: str, name: str) -> str:
    """Return the place of a member in messages: ``calibration[cat/17.jpg]``."""
    return f"{location}[{shown(name)[1:-1][:SHOWN_CHARACTERS]}]"


class MemberNames:
    """The names of an archive's files and folders.

    Attributes
    ----------
    files
        In the archive's order; none of them twice.
    positions
        The position of each file.
    folders
        Folders that have entries of their own, without a slash at the end.
    """

    def __init__(self, location: str) -> None:
        self.location = location
        self.files: list[str] = []
        self.positions: dict[str, int] = {}
        self.folders: set[str] = set()

    def add(self, name: str, *, is_folder: bool) -> None:
        """Add the next member; a leading ``./`` is not part of its name."""
        if len(self.files) + len(self.folders) >= MAX_MEMBERS:
            raise TooLarge.at(
                self.location, f"expected at most {MAX_MEMBERS} files and folders; send fewer"
            )
        plain = name.replace("\\", "/")  # as some archivers of Windows write it
        while plain.startswith("./"):
            plain = plain[2:]
        n_bytes = len(plain.encode("utf-8", "surrogateescape"))
        if n_bytes > MAX_NAME_BYTES or not is_plain_name(plain):
            raise InvalidDataset.at(
                member_place(self.location, name),
                "expected a plain name in UTF-8, of folders with / between them, that begins in "
                "the archive and stays there",
            )
        if is_folder:
            self.folders.add(plain)
            return
        if self.positions.setdefault(plain, len(self.files)) != len(self.files):
            raise InvalidDataset.at(
                member_place(self.location, plain), "expected each member once, got it twice"
            )
        self.files.append(plain)

    def check_length(self, position: int, size: int, most: int) -> None:
        """Refuse a file by its claimed size, before it is read."""
        if size > most:
            raise TooLarge.at(
                member_place(self.location, self.files[position]),
                f"expected a file of at most {most} bytes, got {size}",
            )


class ZipPictures:
    """The files of a zip archive."""

    def __init__(self, file: SetFile, ctx: SetContext) -> None:
        location = ctx.location
        self.names = MemberNames(location)
        refusal = TooLarge.at(
            location,
            f"expected a directory of at most {MAX_DIRECTORY_BYTES} bytes; pack the pictures into "
            "a .tar",
        )
        self._archive = ZipArchive(
            file.open_limited(most=MAX_DIRECTORY_BYTES, refusal=refusal),
            location=location,
            max_inflated_bytes=ctx.limits.max_inflated_bytes,
            place=lambda member: member_place(location, member.filename),
        )
        self._members: list[zipfile.ZipInfo] = []
        for member in self._archive.members:
            self.names.add(member.filename.removesuffix("/"), is_folder=member.is_dir())
            if not member.is_dir():
                self._members.append(member)

    def read(self, position: int, most: int = MAX_MEMBER_BYTES) -> bytes:
        """Return a file after verifying its checksum; several threads may read at once."""
        member = self._members[position]
        self.names.check_length(position, member.file_size, most)
        content = np.empty(member.file_size, np.uint8)
        place = member_place(self.names.location, member.filename)
        read_into(self._archive.open(member), content, place)
        return content.tobytes()


class TarPictures:
    """The files of a tar archive that is not compressed."""

    def __init__(self, file: SetFile, ctx: SetContext) -> None:
        self.names = MemberNames(ctx.location)
        self._file = file
        self._places: list[tuple[int, int]] = []
        for member in _tar_members(file, ctx):
            if member.isdir() and member.name in ("", "."):
                continue
            self.names.add(member.name, is_folder=member.isdir())
            if not member.isdir():
                self._places.append((member.size, member.offset_data))

    def read(self, position: int, most: int = MAX_MEMBER_BYTES) -> bytes:
        """Return a file; several threads may read at once."""
        size, offset = self._places[position]
        self.names.check_length(position, size, most)
        return self._file.read_at(size, offset)


Archive: TypeAlias = ZipPictures | TarPictures


def is_tar(head: bytes) -> bool:
    """Tell whether a file begins as a tar archive does."""
    try:
        return bool(tarfile.TarInfo.frombuf(head[:_BLOCK], "utf-8", "surrogateescape").name)
    except tarfile.HeaderError:
        return head[257:262] == b"ustar"


def _tar_members(file: SetFile, ctx: SetContext) -> Iterator[tarfile.TarInfo]:
    """Yield the members; each is a complete file or a folder."""
    refusal = TooLarge.at(
        ctx.location, f"expected at most {MAX_EXTENSION_BYTES} bytes that describe a member"
    )
    stream = file.open_limited(most=MAX_EXTENSION_BYTES, refusal=refusal)
    with refuse_damage(ctx.location):
        archive = tarfile.open(fileobj=stream, mode="r:", encoding="utf-8")  # noqa: SIM115 - the file is closed with its set
    last = ""
    while True:
        with refuse_damage(ctx.location):
            member = archive.next()
        if member is None:
            break
        archive.members = []  # type: ignore[attr-defined]  # it keeps every header
        _check_member(member, file.size, ctx)
        yield member
        last = f" after {member_place(ctx.location, member.name)}"
    _check_end(file, archive.offset, last, ctx)


def _check_member(member: tarfile.TarInfo, file_size: int, ctx: SetContext) -> None:
    place = member_place(ctx.location, member.name)
    is_sparse = member.issparse() or any(key.startswith(_SPARSE) for key in member.pax_headers)
    if is_sparse or member.type not in _PLAIN:
        kind = "a file with holes" if is_sparse else _KINDS.get(member.type, "another kind")
        raise InvalidDataset.at(place, f"expected plain files and folders, got {kind}")
    if not 0 <= member.size <= file_size - member.offset_data:
        raise InvalidDataset.at(
            place,
            f"claims {member.size} bytes, more than the archive has left; send the file again",
        )


def _check_end(file: SetFile, offset: int, last: str, ctx: SetContext) -> None:
    """Refuse damaged headers, at which `tarfile` stops silently, and bytes after the end."""
    block = file.read_at(_BLOCK, offset)
    if block != bytes(_BLOCK):
        found = "damaged bytes" if len(block) == _BLOCK else "one cut off"
        raise ctx.invalid(
            f"expected a whole tar archive, got {found} at byte {offset}{last}; send the file again"
        )
    while chunk := file.read_at(MAX_EXTENSION_BYTES, offset):
        if chunk.count(0) != len(chunk):
            raise ctx.invalid(
                f"expected one tar archive, got more behind its end at byte {offset}; "
                "pack all the pictures into one",
            )
        offset += len(chunk)

"""Archives of pictures: the plain files of a zip or tar archive, each read where it lies."""

import tarfile
import zipfile
from collections.abc import Iterator
from typing import Protocol

from service.child.reading.set_file import SetFile
from service.child.reading.zip_archive import ZipArchive, ZipKind, refuse_damage
from service.errors import SHOWN_CHARACTERS, InvalidDataset, TooLarge, shown
from service.runner.messages.limits import MEBIBYTE
from service.runner.messages.reading import SetContext

MAX_MEMBER_BYTES = 64 * MEBIBYTE
MAX_MEMBERS = 1_000_000
MAX_NAME_BYTES = 1024
# Of what describes one member of a tar archive beside its header.
MAX_EXTENSION_BYTES = MEBIBYTE
ZIP = ZipKind("zip archive", 128 * MEBIBYTE, "pack the pictures into a .tar")

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
    """Return what a member is called in messages: ``calibration[cat/17.jpg]``."""
    return f"{location}[{shown(name)[1:-1][:SHOWN_CHARACTERS]}]"


class MemberNames:
    """The names of an archive's files and folders.

    Attributes
    ----------
    files
        In the archive's order; none of them twice.
    positions
        Where each of them stands.
    folders
        Those that have entries of their own, without a slash at the end.
    """

    def __init__(self, location: str) -> None:
        self.location = location
        self.files: list[str] = []
        self.positions: dict[str, int] = {}
        self.folders: set[str] = set()

    def add(self, name: str, *, is_folder: bool) -> None:
        """Add the next member."""
        if len(self.files) + len(self.folders) >= MAX_MEMBERS:
            raise TooLarge.at(
                self.location, f"expected at most {MAX_MEMBERS} files and folders; send fewer"
            )
        plain = self._plain(name)
        if is_folder:
            self.folders.add(plain)
            return
        if self.positions.setdefault(plain, len(self.files)) != len(self.files):
            raise InvalidDataset.at(
                member_place(self.location, plain), "expected each member once, got it twice"
            )
        self.files.append(plain)

    def _plain(self, name: str) -> str:
        """Return a member's name, which is a label and never a path, without a leading ``./``."""
        plain = name
        while plain.startswith("./"):
            plain = plain[2:]
        if (
            len(plain.encode("utf-8", "surrogateescape")) > MAX_NAME_BYTES
            or not plain.isprintable()
            or "\\" in plain
            or any(part in ("", ".", "..") for part in plain.split("/"))
        ):
            raise InvalidDataset.at(
                member_place(self.location, name),
                "expected a plain name in UTF-8, of folders with / between them, that begins in "
                "the archive and stays there",
            )
        return plain


class Archive(Protocol):
    """The plain files of an archive, by their positions; never extracted."""

    names: MemberNames

    def size(self, position: int) -> int:
        """Return the bytes that a file claims to have."""

    def read(self, position: int, most: int = MAX_MEMBER_BYTES) -> bytes:
        """Return a file of at most ``most`` bytes; several threads may read at once."""


class ZipPictures:
    """The files of a zip archive."""

    def __init__(self, file: SetFile, ctx: SetContext) -> None:
        location = ctx.location
        self.names = MemberNames(location)
        stream = file.open_limited(most=ZIP.max_directory_bytes, refusal=ZIP.too_long(location))
        self._archive = ZipArchive(
            stream,
            location=location,
            kind=ZIP,
            max_inflated_bytes=ctx.limits.max_inflated_bytes,
            place=lambda member: member_place(location, member.filename),
        )
        self._members: list[zipfile.ZipInfo] = []
        for member in self._archive.members:
            if member.orig_filename != member.filename:
                raise InvalidDataset.at(
                    member_place(location, member.filename), "expected a plain name in UTF-8"
                )
            self.names.add(member.filename.removesuffix("/"), is_folder=member.is_dir())
            if not member.is_dir():
                self._members.append(member)

    def size(self, position: int) -> int:
        """Return the bytes that a file claims to have."""
        return self._members[position].file_size

    def read(self, position: int, most: int = MAX_MEMBER_BYTES) -> bytes:
        """Return a file, whose checksum is held against its bytes."""
        _check_length(self.names, position, self.size(position), most)
        stream = self._archive.open(self._members[position])
        content = stream.read(self.size(position))
        stream.close()
        return content


class TarPictures:
    """The files of a tar archive that is not compressed."""

    def __init__(self, file: SetFile, location: str) -> None:
        self.names = MemberNames(location)
        self._file = file
        self._places: list[tuple[int, int]] = []
        for member in _tar_members(file, location):
            if member.isdir():
                if member.name not in ("", "."):
                    self.names.add(member.name, is_folder=True)
                continue
            self.names.add(member.name, is_folder=False)
            self._places.append((member.size, member.offset_data))

    def size(self, position: int) -> int:
        """Return the bytes of a file."""
        return self._places[position][0]

    def read(self, position: int, most: int = MAX_MEMBER_BYTES) -> bytes:
        """Return a file."""
        _check_length(self.names, position, self.size(position), most)
        return self._file.read_at(*self._places[position])


def is_tar(head: bytes) -> bool:
    """Tell whether a file begins as a tar archive does."""
    try:
        return bool(tarfile.TarInfo.frombuf(head[:_BLOCK], "utf-8", "surrogateescape").name)
    except tarfile.HeaderError:
        return head[257:262] == b"ustar"


def _check_length(names: MemberNames, position: int, size: int, most: int) -> None:
    """Refuse a file by the bytes it claims, before any of them is read."""
    if size > most:
        raise TooLarge.at(
            member_place(names.location, names.files[position]),
            f"expected a file of at most {most} bytes, got {size}",
        )


def _tar_members(file: SetFile, location: str) -> Iterator[tarfile.TarInfo]:
    """Yield the members, having checked that each is a file or a folder that is all there."""
    stream = file.open_limited(
        most=MAX_EXTENSION_BYTES,
        refusal=TooLarge.at(
            location, f"expected at most {MAX_EXTENSION_BYTES} bytes that describe a member"
        ),
    )
    with refuse_damage(location, "tar archive"):
        try:
            archive = tarfile.open(fileobj=stream, mode="r:", encoding="utf-8")  # noqa: SIM115 - the file is closed with its set
        except tarfile.TarError as error:
            raise ValueError("no header") from error
    last = ""
    while (member := _next_member(archive, location)) is not None:
        _check_member(member, file.size, location)
        yield member
        last = member.name
    _check_end(file, archive.offset, last, location)


def _next_member(archive: tarfile.TarFile, location: str) -> tarfile.TarInfo | None:
    with refuse_damage(location, "tar archive"):
        try:
            member = archive.next()
        except tarfile.TarError as error:
            raise ValueError("no header") from error
    archive.members = []  # type: ignore[attr-defined]  # it keeps every header
    return member


def _check_member(member: tarfile.TarInfo, file_size: int, location: str) -> None:
    place = member_place(location, member.name)
    is_sparse = member.issparse() or any(key.startswith(_SPARSE) for key in member.pax_headers)
    if is_sparse or member.type not in _PLAIN:
        kind = "a file with holes" if is_sparse else _KINDS.get(member.type, "another kind")
        raise InvalidDataset.at(place, f"expected plain files and folders, got {kind}")
    if not 0 <= member.size <= file_size - member.offset_data:
        raise InvalidDataset.at(
            place,
            f"claims {member.size} bytes, more than the archive has left; send the file again",
        )


def _check_end(file: SetFile, offset: int, last: str, location: str) -> None:
    """Refuse damaged headers, at which `tarfile` ends silently, and bytes behind the end."""
    block = file.read_at(_BLOCK, offset)
    if block != bytes(_BLOCK):
        after = f" after {member_place(location, last)}" if last else ""
        found = "damaged bytes" if len(block) == _BLOCK else "one cut off"
        raise InvalidDataset.at(
            location,
            f"expected a whole tar archive, got {found} at byte {offset}{after}; "
            "send the file again",
        )
    while chunk := file.read_at(MAX_EXTENSION_BYTES, offset):
        if chunk.count(0) != len(chunk):
            raise InvalidDataset.at(
                location,
                f"expected one tar archive, got more behind its end at byte {offset}; "
                "pack all the pictures into one",
            )
        offset += len(chunk)

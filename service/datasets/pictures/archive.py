"""What the readers of pictures ask of an archive, be it zip or tar."""

from typing import Protocol

from service.datasets.pictures.member_names import MemberNames, member_place
from service.errors import TooLarge

MEBIBYTE = 1024**2
MAX_MEMBER_BYTES = 64 * MEBIBYTE
# Pictures with a file for the label of each, twice over.
MAX_MEMBERS = 4_000_000


class Archive(Protocol):
    """The plain files of an archive, by their positions; never extracted.

    Attributes
    ----------
    location
        The part or argument that begins every violation.
    names
        Of the files: plain, none of them twice.
    folders
        Of the folders that have entries of their own, without a slash at the end.
    """

    location: str
    names: MemberNames
    folders: MemberNames

    def size(self, position: int) -> int:
        """Return the bytes that a file claims to have."""

    def read(self, position: int) -> bytes:
        """Return a file, which is as long as it claims; several threads may read at once."""

    def close(self) -> None:
        """Let go of the archive."""


def refuse_long_member(archive: Archive, position: int, most: int = MAX_MEMBER_BYTES) -> None:
    """Refuse a file by the bytes it claims, before any of them is read."""
    if archive.size(position) > most:
        raise TooLarge.at(
            member_place(archive.location, archive.names[position]),
            f"expected a file of at most {most} bytes, got {archive.size(position)}",
        )


def check_n_members(n_members: int, *, location: str) -> None:
    """Refuse an archive of too many files and folders."""
    if n_members > MAX_MEMBERS:
        raise TooLarge.at(
            location, f"expected at most {MAX_MEMBERS} files and folders; send fewer pictures"
        )

"""The names of an archive's members: a million of them in some tens of megabytes."""

from array import array
from bisect import bisect_left
from collections.abc import Iterator

import numpy as np

from service.errors import InvalidDataset, TooLarge, shown

MAX_NAME_BYTES = 1024
MAX_NAMES_BYTES = 128 * 1024**2


def member_place(location: str, name: str) -> str:
    """Return what a member is called in messages: ``calibration[cat/17.jpg]``."""
    return f"{location}[{shown(name)[1:-1]}]"


def plain_name(name: str, *, location: str) -> str:
    """Return a member's name, which is a label and never a path, without a leading ``./``.

    Raises
    ------
    InvalidDataset
        If the name is absolute, leads out of the archive, is too long or cannot be shown.
    """
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
            member_place(location, name),
            "expected a plain name in UTF-8, of folders with / between them, that begins in the "
            "archive and stays there",
        )
    return plain


class MemberNames:
    """Names by their position in the archive, and positions by name once ``close`` was called.

    They lie end to end in one piece of bytes: a ``str`` of each would take four times as much.
    """

    def __init__(self) -> None:
        self._bytes = bytearray()
        self._ends = array("Q")
        self._hashes = array("q")
        self._order = array("Q")

    def append(self, name: str, *, location: str) -> None:
        """Add the name of the next member."""
        self._bytes += name.encode()
        if len(self._bytes) > MAX_NAMES_BYTES:
            raise TooLarge.at(
                location,
                f"expected names of at most {MAX_NAMES_BYTES} bytes together; send fewer pictures",
            )
        self._ends.append(len(self._bytes))

    def close(self, *, location: str) -> None:
        """Sort the names, so that they can be found; refuse one that stands twice."""
        hashes = np.fromiter((hash(name) for name in self), np.int64, len(self))
        order = np.argsort(hashes, kind="stable")
        self._hashes = array("q", hashes[order].tobytes())
        self._order = array("Q", order.astype(np.uint64).tobytes())
        # Only names of equal hashes can be equal: those alone are looked at.
        ordered = hashes[order]
        for place in np.flatnonzero(ordered[1:] == ordered[:-1]) + 1:
            name = self[self._order[place]]
            if self.find(name) != self._order[place]:
                raise InvalidDataset.at(
                    member_place(location, name), "expected each member once, got it twice"
                )

    def find(self, name: str) -> int | None:
        """Return the position of a name, the first of them if it stands twice."""
        wanted = hash(name)
        place = bisect_left(self._hashes, wanted)
        while place < len(self._hashes) and self._hashes[place] == wanted:
            if self[self._order[place]] == name:
                return self._order[place]
            place += 1
        return None

    def __len__(self) -> int:
        return len(self._ends)

    def __getitem__(self, position: int) -> str:
        start = self._ends[position - 1] if position else 0
        return self._bytes[start : self._ends[position]].decode()

    def __iter__(self) -> Iterator[str]:
        return (self[position] for position in range(len(self)))

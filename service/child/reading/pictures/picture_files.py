"""Which members of an archive are pictures, by the ends of their names, and what the others are."""

from array import array
from collections.abc import Iterator
from dataclasses import dataclass

from service.child.reading.pictures.archives import Archive, member_place
from service.errors import InvalidDataset, shown

ENDINGS = (".jpg", ".jpeg", ".png", ".webp")

_OTHER_ENDINGS = (
    *(".avif", ".bmp", ".gif", ".heic", ".heif", ".jp2", ".jxl", ".pgm", ".ppm"),
    *(".tif", ".tiff"),
)
MAC_FOLDER = "__MACOSX"
_MAC_PREFIX = "._"


@dataclass(frozen=True)
class PictureFiles:
    """The positions of an archive's pictures, in its order."""

    archive: Archive
    positions: "array[int]"

    @property
    def location(self) -> str:
        """The part or argument that begins every violation."""
        return self.archive.names.location

    def names(self) -> Iterator[str]:
        """Yield the name of each picture."""
        return (self.archive.names.files[position] for position in self.positions)

    def find(self, name: str) -> int | None:
        """Return the position of a file of the archive, None if there is none of that name."""
        return self.archive.names.positions.get(name)

    def place(self, name: str) -> str:
        """Return what a member is called in messages."""
        return member_place(self.location, name)


def is_picture(name: str) -> bool:
    """Tell whether a member is called as a picture that is read."""
    return name.lower().endswith(ENDINGS) and not _is_of_mac(name)


def picture_files(archive: Archive) -> PictureFiles:
    """Return the pictures of an archive.

    Raises
    ------
    InvalidDataset
        If there are none, or some in a format that is not read.
    """
    positions = array("L")
    for position, name in enumerate(archive.names.files):
        if is_picture(name):
            positions.append(position)
        elif name.lower().endswith(_OTHER_ENDINGS) and not _is_of_mac(name):
            raise InvalidDataset.at(
                member_place(archive.names.location, name),
                "expected pictures in JPEG, PNG or WebP; convert it, or leave it out",
            )
    if not positions:
        found = f"none among its {len(archive.names.files)} files"
        if len(archive.names.files):
            found += f", such as {shown(archive.names.files[0])}"
        raise InvalidDataset.at(
            archive.names.location,
            f"expected pictures called .jpg, .jpeg, .png or .webp, got {found}; "
            "arrays are sent as numpy.savez writes them",
        )
    return PictureFiles(archive, positions)


def stem(name: str) -> str:
    """Return a picture's name without its ending."""
    return name[: name.rindex(".")]


def left_out(pictures: PictureFiles, n_used: int, used: str | None) -> str | None:
    """Return a sentence on the files that are neither pictures nor labels, if there are any.

    ``n_used`` files have labels in them; ``used`` is how names of such files end.
    """
    n_others = len(pictures.archive.names.files) - len(pictures.positions) - n_used
    if not n_others:
        return None
    example = next(
        name
        for name in pictures.archive.names.files
        if not is_picture(name) and not (used and name.endswith(used))
    )
    files = "1 file that is" if n_others == 1 else f"{n_others} files that are"
    were = "was" if n_others == 1 else "were"
    no = "no picture" if n_others == 1 else "no pictures"
    return f"{files} {no} {were} left out, such as {shown(example)}."


def _is_of_mac(name: str) -> bool:
    """Tell whether a file holds what macOS keeps beside another of nearly the same name."""
    parts = name.split("/")
    return MAC_FOLDER in parts or parts[-1].startswith(_MAC_PREFIX)

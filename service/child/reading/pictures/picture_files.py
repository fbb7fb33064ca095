"""The pictures among the members of an archive, by the endings of their names."""

import posixpath
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from service.child.reading.pictures.archives import Archive, member_place
from service.errors import InvalidDataset, shown

ENDINGS = (".jpg", ".jpeg", ".png", ".webp")
MAC_FOLDER = "__MACOSX"

_OTHER_ENDINGS = (
    *(".avif", ".bmp", ".gif", ".heic", ".heif", ".jp2", ".jxl", ".pgm", ".ppm"),
    *(".tif", ".tiff"),
)


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
        """Return the place of a member in messages."""
        return member_place(self.location, name)

    def common_folders(self) -> list[str]:
        """Return the folders, from the top, that contain all pictures."""
        names = min(self.names()), max(self.names())
        common = posixpath.commonpath([posixpath.dirname(name) for name in names])
        return common.split("/") if common else []


def is_picture(name: str) -> bool:
    """Tell whether a member has the name of a supported picture."""
    return name.lower().endswith(ENDINGS) and not _is_hidden(name)


TABLES = (".csv", ".parquet", ".pq")


def picture_files(archive: Archive) -> PictureFiles:
    """Return the pictures of an archive.

    Raises
    ------
    InvalidDataset
        If there are none, or some in a format that is not read.
    """
    names = archive.names
    positions = array("L", (at for at, name in enumerate(names.files) if is_picture(name)))
    for name in names.files:
        if name.lower().endswith(_OTHER_ENDINGS) and not _is_hidden(name):
            raise InvalidDataset.at(
                member_place(names.location, name),
                "expected pictures in JPEG, PNG or WebP; convert it, or leave it out",
            )
    if not positions:
        raise InvalidDataset.at(names.location, _without_pictures(names.files))
    return PictureFiles(archive, positions)


def _without_pictures(files: Sequence[str]) -> str:
    """Return what an archive without pictures is, and what to send."""
    if any(name.startswith("xl/") for name in files):
        return "got an Excel workbook; save the sheet as CSV (UTF-8), and send that"
    tables = [name for name in files if name.lower().endswith(TABLES)]
    if len(tables) == 1:
        return f"got an archive without pictures, of {shown(tables[0])}; send that file itself"
    if tables:
        return (
            f"got an archive of {len(tables)} tables, such as {shown(tables[0])}; send one, of "
            "pyarrow.parquet.write_table(pyarrow.dataset.dataset(folder).to_table(), 'set.parquet')"
        )
    examples = f", such as {shown(files[0])}" if files else ""
    return (
        "expected pictures called .jpg, .jpeg, .png or .webp, got none among its "
        f"{len(files)} files{examples}; arrays are sent as numpy.savez writes them"
    )


def left_out(pictures: PictureFiles, n_used: int, used: str | None) -> str | None:
    """Return a note about files that are neither pictures nor labels, if there are any.

    ``n_used`` files hold labels; their names end with ``used``.
    """
    files = pictures.archive.names.files
    n_others = len(files) - len(pictures.positions) - n_used
    if not n_others:
        return None
    example = next(
        name for name in files if not is_picture(name) and not (used and name.endswith(used))
    )
    found = f"{n_others} files that are no pictures were"
    if n_others == 1:
        found = "1 file that is no picture was"
    return f"{found} left out, such as {shown(example)}."


def _is_hidden(name: str) -> bool:
    """Tell whether a file or a folder of it is hidden, or of macOS's metadata."""
    parts = name.split("/")
    return MAC_FOLDER in parts or any(part.startswith(".") for part in parts)

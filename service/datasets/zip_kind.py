"""Whether a zip archive holds arrays or pictures: told from the names in its directory."""

import struct
from collections.abc import Iterator
from pathlib import Path

from service.datasets.pictures.picture_files import is_picture
from service.datasets.pictures.zip_archive import ZIP
from service.datasets.pictures.zip_entries import read_zip_entries
from service.datasets.zip_directory import read_zip_directory
from service.errors import InvalidDataset, TooLarge

_ARRAY_SUFFIX = ".npy"
_PICKLE_SUFFIX = "/data.pkl"
_MAGIC = (b"PK\x03\x04", b"PK\x05\x06")
_LOCAL = struct.Struct("<4s5H3L2H")


def is_zip(head: bytes) -> bool:
    """Tell whether bytes begin as a zip archive does, an empty one included, and not PyTorch's."""
    return head.startswith(_MAGIC) and not is_torch(head)


def is_torch(head: bytes) -> bool:
    """Tell whether bytes begin as what ``torch.save`` writes: an archive around a pickle."""
    return head.startswith(_MAGIC) and _first_name(head).endswith(_PICKLE_SUFFIX)


def holds_pictures(head: bytes, path: Path) -> bool:
    """Tell whether a zip archive holds pictures, or at least something and no arrays.

    Where its directory cannot be read, the name of the first member decides who refuses it.
    """
    if not is_zip(head):
        return False
    try:
        empty = True
        for name in _names(path):
            if is_picture(name):
                return True
            if name.endswith(_ARRAY_SUFFIX):
                return False
            empty = False
    except (InvalidDataset, TooLarge):
        return is_picture(_first_name(head))
    return not empty


def _names(path: Path) -> Iterator[str]:
    with path.open("rb") as file:
        directory = read_zip_directory(file, location="", kind=ZIP)
        file.seek(directory.offset)
        entries = file.read(directory.size)
    return (entry.name for entry in read_zip_entries(entries, location=""))


def _first_name(head: bytes) -> str:
    if len(head) < _LOCAL.size:
        return ""
    length = _LOCAL.unpack_from(head)[9]
    return head[_LOCAL.size : _LOCAL.size + length].decode("utf-8", "replace")

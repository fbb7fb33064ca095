"""Files that are often sent by mistake, known by their first bytes, and what to send instead."""

from service.datasets.zip_kind import is_torch
from service.errors import UnsupportedFormat

# The longest prefix that any format is known by, and enough text to tell it from binary data.
HEAD_BYTES = 4096

_PICKLE = "a pickle, which is never loaded; write arrays with np.savez"
_PICTURE = "a single picture; pack many into a .tar or .zip, a folder for each class"
_EXPECTED = "expected .npz, .npy, .parquet, .csv, or pictures in .zip or .tar"
_MISTAKES: tuple[tuple[bytes, str], ...] = (
    (b"\x80\x02", _PICKLE),
    (b"\x80\x03", _PICKLE),
    (b"\x80\x04", _PICKLE),
    (b"\x80\x05", _PICKLE),
    (b"\x89HDF", "an HDF5 file; write its arrays with np.savez"),
    (b"\x1f\x8b", "a gzip file; send it decompressed"),
    (b"\x28\xb5\x2f\xfd", "a zstandard file; send it decompressed"),
    (b"BZh", "a bzip2 file; send it decompressed"),
    (b"\xfd7zXZ", "an xz file; send it decompressed"),
    (b"7z\xbc\xaf", "a 7z archive; pack the pictures into a .tar"),
    (b"Rar!", "a RAR archive; pack the pictures into a .tar"),
    (b"\xff\xd8\xff", _PICTURE),
    (b"\x89PNG", _PICTURE),
    (b"RIFF", _PICTURE),
    (b"PARE", "an encrypted Parquet file; write it without encryption"),
    (b"ARROW1", "an Arrow IPC file; write it as Parquet"),
    (b"\xff\xfe", "text in UTF-16; write it in UTF-8"),
    (b"\xfe\xff", "text in UTF-16; write it in UTF-8"),
)


def unsupported(head: bytes, *, location: str) -> UnsupportedFormat:
    """Return the error for a file that no reader knows, by its first bytes."""
    if not head:
        return UnsupportedFormat.at(location, "expected a set of samples, got an empty file")
    if is_torch(head):
        return UnsupportedFormat.at(location, f"{_EXPECTED}, got a PyTorch file, {_PICKLE}")
    for prefix, found in _MISTAKES:
        if head.startswith(prefix):
            return UnsupportedFormat.at(location, f"{_EXPECTED}, got {found}")
    return UnsupportedFormat.at(
        location, f"{_EXPECTED}, got bytes of another kind; text is in UTF-8"
    )

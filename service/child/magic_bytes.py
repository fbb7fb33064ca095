"""File formats by their first bytes: media types of those that are read, names of others."""

_MEDIA_TYPES = {
    b"\xff\xd8\xff": "image/jpeg",
    b"\x89PNG": "image/png",
    b"RIFF": "image/webp",
    b"\x93NUMPY": "application/x-npy",
    b"PAR1": "application/vnd.apache.parquet",
    b"PK\x03\x04": "application/x-npz",
}


def media_type_of(content: bytes) -> str | None:
    """Return the media type of a picture, of arrays or of Parquet; None if it is none of these."""
    found = (kind for magic, kind in _MEDIA_TYPES.items() if content.startswith(magic))
    return next(found, None)


_PICKLE = "a pickle, which is never loaded"
_ARRAYS = "write arrays with np.savez"
_DECOMPRESS = "send it decompressed"
_PACK = "pack the pictures into a .tar"

# Offset, bytes, name, and what to send instead as a set of samples.
OTHER_FORMATS: tuple[tuple[int, bytes | tuple[bytes, ...], str, str], ...] = (
    (0, (b"\x80\x02", b"\x80\x03", b"\x80\x04", b"\x80\x05"), _PICKLE, _ARRAYS),
    (0, b"\x89HDF", "an HDF5 file", _ARRAYS),
    (0, b"\x1f\x8b", "gzip", _DECOMPRESS),
    (0, b"\x28\xb5\x2f\xfd", "a zstandard file", _DECOMPRESS),
    (0, b"BZh", "a bzip2 file", _DECOMPRESS),
    (0, b"\xfd7zXZ", "an xz file", _DECOMPRESS),
    (0, b"7z\xbc\xaf", "a 7z archive", _PACK),
    (0, b"Rar!", "a RAR archive", _PACK),
    (0, (b"\xff\xd8\xff", b"\x89PNG"), "a single picture", f"{_PACK}, a folder per class"),
    (8, b"WEBP", "a single picture", f"{_PACK}, a folder per class"),
    (0, b"PARE", "an encrypted Parquet file", "write it without encryption"),
    (0, b"ARROW1", "an Arrow IPC file", "write it as Parquet"),
    (0, (b"II*\x00", b"MM\x00*", b"II+\x00"), "TIFF", ""),
    (0, (b"\xff\xfe", b"\xfe\xff"), "text in UTF-16", "write it in UTF-8"),
    (0, b"GIF8", "GIF", ""),
    (0, b"BM", "BMP", ""),
    (4, (b"ftypheic", b"ftypheix"), "HEIC", ""),
    (4, b"ftypmif1", "HEIF", ""),
    (4, b"ftypavif", "AVIF", ""),
    (0, (b"\x00\x00\x00\x0cjP  ", b"\xff\x4f\xff\x51"), "JPEG 2000", ""),
    (0, (b"\x00\x00\x00\x0cJXL ", b"\xff\x0a"), "JPEG XL", ""),
    (0, b"\x00\x00\x01\x00", "an icon", ""),
    (0, b"8BPS", "a Photoshop file", ""),
    (0, b"%PDF", "PDF", ""),
    (0, b"%!PS", "PostScript", ""),
    (0, b"PK\x03\x04", "a zip archive", ""),
    (0, b"\x93NUMPY", "an .npy array", ""),
    (0, b"<svg", "SVG", ""),
    (0, b"<?xml", "XML", ""),
    (0, b"<", "HTML or XML", ""),
    (0, b"{", "JSON", ""),
)


def other_format(head: bytes) -> tuple[str, str] | None:
    """Return the name of the format, and what to send instead. None if it is unknown."""
    for offset, magic, name, fix in OTHER_FORMATS:
        if head.startswith(magic, offset):
            return name, fix
    return None

"""Which format a picture is in, told from its first bytes; no name of a file is believed."""

from typing import Literal, TypeAlias

from service.errors import InvalidInput

PictureFormat: TypeAlias = Literal["JPEG", "PNG", "WebP"]

PICTURE_FORMATS = "JPEG, PNG or WebP"

_OTHERS: tuple[tuple[int, bytes, str], ...] = (
    (0, b"GIF8", "GIF"),
    (0, b"BM", "BMP"),
    (0, b"II*\x00", "TIFF"),
    (0, b"MM\x00*", "TIFF"),
    (0, b"II+\x00", "TIFF"),
    (4, b"ftypheic", "HEIC"),
    (4, b"ftypheix", "HEIC"),
    (4, b"ftypmif1", "HEIF"),
    (4, b"ftypavif", "AVIF"),
    (0, b"\x00\x00\x00\x0cjP  ", "JPEG 2000"),
    (0, b"\xff\x4f\xff\x51", "JPEG 2000"),
    (0, b"\x00\x00\x00\x0cJXL ", "JPEG XL"),
    (0, b"\xff\x0a", "JPEG XL"),
    (0, b"\x00\x00\x01\x00", "an icon"),
    (0, b"8BPS", "Photoshop"),
    (0, b"%PDF", "PDF"),
    (0, b"%!PS", "PostScript"),
    (0, b"PK\x03\x04", "a zip archive"),
    (0, b"\x1f\x8b", "gzip"),
    (0, b"\x93NUMPY", "an .npy array"),
    (0, b"<svg", "SVG"),
    (0, b"<?xml", "XML"),
    (0, b"<", "HTML or XML"),
    (0, b"{", "JSON"),
)


def picture_format(content: bytes, *, place: str, invalid: type[InvalidInput]) -> PictureFormat:
    """Return the format of a picture.

    Raises
    ------
    InvalidInput
        Of the class ``invalid``: if it is in no format that is read; the message tells which.
    """
    if content.startswith(b"\xff\xd8\xff"):
        return "JPEG"
    if content.startswith(b"\x89PNG\r\n\x1a\n"):
        return "PNG"
    if content.startswith(b"RIFF") and content[8:12] == b"WEBP":
        return "WebP"
    raise invalid.at(place, f"expected a picture, {PICTURE_FORMATS}, got {_told(content)}")


def _told(content: bytes) -> str:
    if not content:
        return "no bytes"
    for offset, magic, name in _OTHERS:
        if content.startswith(magic, offset):
            return name
    return f"{len(content)} bytes of an unknown format"

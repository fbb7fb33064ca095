"""What the bytes of a picture claim: format, size, frames and scans, before anything is decoded."""

from collections.abc import Iterator
from typing import Literal, TypeAlias

from service.errors import InvalidInput, TooLarge

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


# 256 MiB once they are decoded, of four bytes each.
MOST_PIXELS = 64_000_000
# A progressive JPEG of few bytes may ask for every pixel again in each of thousands of scans.
MOST_SCANNED_PIXELS = 32 * MOST_PIXELS

_START_OF_SCAN = b"\xff\xda"
_PNG_HEADER_BYTES = 8
_PNG_CHUNK_BYTES = 12  # length, name and checksum
_VP8X_ANIMATED = 0x02


def check_frames(
    content: bytes, kind: PictureFormat, *, place: str, invalid: type[InvalidInput]
) -> None:
    """Refuse a picture that moves: which of its frames a model should see is not ours to say.

    Raises
    ------
    InvalidInput
        Of the class ``invalid``.
    """
    moves = kind == "WebP" and content[12:16] == b"VP8X" and bool(content[20] & _VP8X_ANIMATED)
    if moves or (kind == "PNG" and b"acTL" in _png_chunks(content)):
        raise invalid.at(place, f"this {kind} is animated; send one still picture")


def check_size(width: int, height: int, *, place: str, state: str = "") -> None:
    """Refuse a picture of too many pixels, in whatever state it is: " once it is resized".

    Raises
    ------
    TooLarge
    """
    if width * height > MOST_PIXELS:
        raise TooLarge.at(
            place,
            f"expected a picture of at most {MOST_PIXELS // 10**6} megapixels{state}, "
            f"got {width} x {height}",
        )


def check_scans(content: bytes, width: int, height: int, *, place: str) -> None:
    """Refuse a JPEG that would be gone over too often.

    Raises
    ------
    TooLarge
    """
    scans = content.count(_START_OF_SCAN)  # no byte of a scan's data looks like this
    if scans * width * height > MOST_SCANNED_PIXELS:
        raise TooLarge.at(place, f"this JPEG of {width} x {height} has too many scans: {scans}")


def webp_size(content: bytes) -> tuple[int, int] | None:
    """Return width and height as the head of a WebP claims them; None where it is no head.

    Its decoder takes the memory for all pixels before it tells their number.
    """
    kind, head = content[12:16], content[20:30]
    if kind == b"VP8 " and head[3:6] == b"\x9d\x01\x2a":
        return _number(head[6:8]) & 0x3FFF, _number(head[8:10]) & 0x3FFF
    if kind == b"VP8L" and head[:1] == b"\x2f":
        bits = _number(head[1:5])
        return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
    if kind == b"VP8X":
        return _number(head[4:7]) + 1, _number(head[7:10]) + 1
    return None


def _number(content: bytes) -> int:
    return int.from_bytes(content, "little")


def _png_chunks(content: bytes) -> Iterator[bytes]:
    start = _PNG_HEADER_BYTES
    while start + _PNG_CHUNK_BYTES <= len(content):
        yield content[start + 4 : start + 8]
        start += _PNG_CHUNK_BYTES + int.from_bytes(content[start : start + 4], "big")

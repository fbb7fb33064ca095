"""What the bytes of a picture claim, held against what may be decoded before anything is."""

from collections.abc import Iterator

from service.errors import InvalidInput, TooLarge
from service.pictures.formats import PictureFormat

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

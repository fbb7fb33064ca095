"""Format, size, frames and scans of a picture, read from its bytes before it is decoded."""

from typing import Literal, TypeAlias

from service.child.magic_bytes import other_format
from service.errors import InvalidInput, TooLarge

PictureFormat: TypeAlias = Literal["JPEG", "PNG", "WebP"]

PICTURE_FORMATS = "JPEG, PNG or WebP"
# 256 MiB once they are decoded, of four bytes each.
MOST_PIXELS = 64_000_000
# A progressive JPEG of few bytes may ask for every pixel again in each of thousands of scans.
MOST_SCANNED_PIXELS = 32 * MOST_PIXELS

_START_OF_SCAN = b"\xff\xda"
_VP8X_ANIMATED = 0x02


def picture_format(content: bytes, *, place: str) -> PictureFormat:
    """Return the format of a picture.

    Raises
    ------
    InvalidInput
        If it is in no format that is read; the message names it.
    """
    if content.startswith(b"\xff\xd8\xff"):
        return "JPEG"
    if content.startswith(b"\x89PNG\r\n\x1a\n"):
        return "PNG"
    if content.startswith(b"RIFF") and content[8:12] == b"WEBP":
        return "WebP"
    unknown = f"{len(content)} bytes of an unknown format" if content else "no bytes"
    name, _ = other_format(content) or (unknown, "")
    raise InvalidInput.at(place, f"expected a picture, {PICTURE_FORMATS}, got {name}")


def check_frames(content: bytes, kind: PictureFormat, *, place: str) -> None:
    """Refuse an animated picture: it is unclear which of its frames a model should see.

    Raises
    ------
    InvalidInput
        If it is animated.
    """
    is_animated = kind == "PNG" and b"acTL" in content[: content.find(b"IDAT")]
    if kind == "WebP" and content[12:16] == b"VP8X":
        is_animated = bool(content[20] & _VP8X_ANIMATED)
    if is_animated:
        raise InvalidInput.at(place, f"this {kind} is animated; send one still picture")


def check_size(width: int, height: int, *, place: str, state: str = "") -> None:
    """Refuse a picture of too many pixels; ``state`` says when, such as " once it is resized".

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
    """Refuse a JPEG whose pixels are written too many times.

    Raises
    ------
    TooLarge
    """
    scans = content.count(_START_OF_SCAN)  # no byte of a scan's data looks like this
    if scans * width * height > MOST_SCANNED_PIXELS:
        raise TooLarge.at(place, f"this JPEG of {width} x {height} has too many scans: {scans}")


def webp_size(content: bytes) -> tuple[int, int] | None:
    """Return the width and height that the header of a WebP claims; None if it is invalid.

    Its decoder allocates all pixels before it tells their number.
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

"""How many pixels a picture claims to have: what decoding it will take, before it is decoded."""

from service.pictures.claims import MOST_PIXELS, webp_size

_PNG_MAGIC = b"\x89PNG\r\n\x1a\n"
_JPEG_MAGIC = b"\xff\xd8"
_MARKER = 0xFF
_START_OF_SCAN = 0xDA
_ALONE = frozenset({0x01, *range(0xD0, 0xD9)})
_FRAMES = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
_FRAME_BYTES = 9


def claimed_pixels(content: bytes) -> int:
    """Return the pixels that the head of a picture claims; where it is none, the most there are."""
    if content.startswith(_PNG_MAGIC):
        return int.from_bytes(content[16:20], "big") * int.from_bytes(content[20:24], "big")
    if content.startswith(_JPEG_MAGIC):
        return _jpeg_pixels(content)
    size = webp_size(content)
    return MOST_PIXELS if size is None else size[0] * size[1]


def _jpeg_pixels(content: bytes) -> int:
    """Return the pixels of the largest frame that is announced before the first scan."""
    at, most = len(_JPEG_MAGIC), 0
    while at + _FRAME_BYTES <= len(content) and content[at] == _MARKER:
        kind = content[at + 1]
        if kind == _START_OF_SCAN:
            return most or MOST_PIXELS
        if kind in _FRAMES:
            height = int.from_bytes(content[at + 5 : at + 7], "big")
            width = int.from_bytes(content[at + 7 : at + 9], "big")
            most = max(most, height * width)
        if kind == _MARKER:
            at += 1  # a filler
        elif kind in _ALONE:
            at += 2
        else:
            at += 2 + int.from_bytes(content[at + 2 : at + 4], "big")
    return MOST_PIXELS

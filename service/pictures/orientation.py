"""How a picture is to be turned before it is looked at, as its EXIF data says."""

import struct
from collections.abc import Mapping

from PIL import Image

_PREFIX = b"Exif\x00\x00"
_TAG = 0x0112
_SHORT = 3
_TURNS: Mapping[int, Image.Transpose] = {
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}


def upright(image: Image.Image) -> Image.Image:
    """Return a picture that was loaded as the camera saw it; without EXIF data as it is."""
    exif = image.info.get("exif")
    turn = _TURNS.get(_orientation(exif)) if isinstance(exif, bytes) else None
    return image if turn is None else image.transpose(turn)


def _orientation(exif: bytes) -> int:
    """Return the tag's value; 0 where there is none, or the data is damaged.

    Pillow's own reader of all tags warns of damage in any other of them.
    """
    data = exif.removeprefix(_PREFIX)
    order = {b"II*\x00": "<", b"MM\x00*": ">"}.get(data[:4])
    if order is None:
        return 0
    try:
        (first,) = struct.unpack_from(f"{order}L", data, 4)
        (count,) = struct.unpack_from(f"{order}H", data, first)
        for position in range(count):
            tag, kind, values, value = struct.unpack_from(
                f"{order}HHLH", data, first + 2 + 12 * position
            )
            if tag == _TAG:
                return int(value) if (kind, values) == (_SHORT, 1) else 0
    except struct.error:
        pass
    return 0

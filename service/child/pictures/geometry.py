"""Pictures turned upright and brought to one size: the shorter side resized, the middle cut out.

Sizes and corners are rounded as torchvision does it, so that a model sees what it was evaluated
with.
"""

import struct
from collections.abc import Mapping

from PIL import Image

from service.child.pictures.claims import check_size
from service.errors import InvalidInput
from service.runner.messages.preprocessing import Interpolation, Preprocessing

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


_RESAMPLING: Mapping[Interpolation, Image.Resampling] = {
    "nearest": Image.Resampling.NEAREST,
    "bilinear": Image.Resampling.BILINEAR,
    "bicubic": Image.Resampling.BICUBIC,
    "lanczos": Image.Resampling.LANCZOS,
}


def resized(image: Image.Image, preprocessing: Preprocessing, *, place: str) -> Image.Image:
    """Return the picture at the size that is asked for; a smaller one is smoothed first.

    Raises
    ------
    TooLarge
        If a long and narrow picture would become one of too many pixels.
    """
    width, height = _size(image.width, image.height, preprocessing.resize)
    if (width, height) == image.size:
        return image
    check_size(width, height, place=place, state=" once it is resized")
    return image.resize((width, height), _RESAMPLING[preprocessing.interpolation])


def cropped(
    image: Image.Image,
    preprocessing: Preprocessing,
    *,
    place: str,
    invalid: type[InvalidInput],
) -> Image.Image:
    """Return the middle of the picture.

    Raises
    ------
    InvalidInput
        Of the class ``invalid``: if the picture is smaller than that.
    """
    if preprocessing.crop is None:
        return image
    height, width = preprocessing.crop
    if image.height < height or image.width < width:
        raise invalid.at(
            place,
            f"expected a picture of at least {width} x {height} to crop, got {image.width} x "
            f"{image.height}; send larger pictures, or a larger preprocessing.resize",
        )
    # Python rounds a half to the even corner, as torchvision's arithmetic does.
    top, left = round((image.height - height) / 2), round((image.width - width) / 2)
    return image.crop((left, top, left + width, top + height))


def _size(width: int, height: int, asked: int | tuple[int, int] | None) -> tuple[int, int]:
    """Return width and height of a picture once it is resized."""
    if asked is None:
        return width, height
    if isinstance(asked, tuple):
        return asked[1], asked[0]
    if width <= height:
        return asked, int(asked * height / width)
    return int(asked * width / height), asked

"""Resizing and cropping of pictures, with the rounding of torchvision."""

from collections.abc import Mapping

from PIL import Image

from howsure.preprocessing import Interpolation, Preprocessing
from service.child.pictures.claims import check_size
from service.errors import InvalidInput

_RESAMPLING: Mapping[Interpolation, Image.Resampling] = {
    "nearest": Image.Resampling.NEAREST,
    "bilinear": Image.Resampling.BILINEAR,
    "bicubic": Image.Resampling.BICUBIC,
    "lanczos": Image.Resampling.LANCZOS,
}


def resized(image: Image.Image, preprocessing: Preprocessing, *, place: str) -> Image.Image:
    """Return the picture at the configured size.

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


def cropped(image: Image.Image, preprocessing: Preprocessing, *, place: str) -> Image.Image:
    """Return the centre crop of the picture.

    Raises
    ------
    InvalidInput
        If the picture is smaller than the crop.
    """
    if preprocessing.crop is None:
        return image
    height, width = preprocessing.crop
    if image.height < height or image.width < width:
        raise InvalidInput.at(
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

"""Decoding of JPEG, PNG and WebP to the pixels that a model takes.

Pictures are decoded at full resolution by Pillow. EXIF orientation is applied, colour profiles are
not. Transparency is dropped: the colour under it is seen. Of 16 bits the upper eight are kept.
"""

from collections.abc import Mapping
from io import BytesIO

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageOps
from PIL.ImageFile import ImageFile
from PIL.JpegImagePlugin import JpegImageFile
from PIL.PngImagePlugin import PngImageFile
from PIL.WebPImagePlugin import WebPImageFile

from howsure.preprocessing import Preprocessing
from service.child.pictures.claims import (
    MOST_PIXELS,
    PictureFormat,
    check_frames,
    check_scans,
    check_size,
    picture_format,
    webp_size,
)
from service.child.pictures.geometry import cropped, resized
from service.errors import InvalidDataset, InvalidInput, ServiceError


class _QuietJpegFile(JpegImageFile):
    """A JPEG without its resolution, whose lookup warns of damage in EXIF data."""

    def _read_dpi_from_exif(self) -> None:
        """Do nothing."""


# Not `Image.open`: it warns of large sizes, and takes a JPEG with a preview for an animated one.
_READERS: Mapping[PictureFormat, type[ImageFile]] = {
    "JPEG": _QuietJpegFile,
    "PNG": PngImageFile,
    "WebP": WebPImageFile,
}

# glibc keeps freed blocks of less than 32 MiB for the thread that used them: each thread would keep
# as much memory as its largest picture took.
Image.core.set_block_size(64 * 1024**2)  # type: ignore[attr-defined]  # it is documented, if not typed


def read_picture(content: bytes, preprocessing: Preprocessing, *, place: str) -> NDArray[np.uint8]:
    """Return the pixels of a picture, uint8 of shape (height, width, channels).

    The channels are red, green and blue, whatever order the model takes, or one of grey. ``place``
    names the picture in errors.

    Raises
    ------
    InvalidInput
        If it is no whole still picture in a format that is read, or is
        smaller than the crop.
    TooLarge
        If it claims more pixels than are decoded, or would have more once it is resized.
    """
    kind = picture_format(content, place=place)
    try:
        image = _loaded(content, kind, place=place)
    except (ServiceError, MemoryError):
        raise
    except Exception as error:
        # Decoders of strangers' bytes fail in every way there is.
        raise InvalidInput.at(
            place, f"this {kind} cannot be decoded: it is damaged or cut off; send it again"
        ) from error
    _turn_upright(image)
    image = _coloured(image, preprocessing)
    image = resized(image, preprocessing, place=place)
    image = cropped(image, preprocessing, place=place)
    pixels = np.asarray(image, dtype=np.uint8)
    return np.ascontiguousarray(pixels.reshape(*pixels.shape[:2], preprocessing.channels))


def read_set_picture(
    content: bytes, preprocessing: Preprocessing, *, place: str
) -> NDArray[np.uint8] | InvalidInput:
    """Return the pixels of a picture of a set, or why it cannot be used."""
    try:
        return read_picture(content, preprocessing, place=place)
    except InvalidInput as error:
        is_plain = type(error) is InvalidInput
        return InvalidDataset(error.message, error.violations) if is_plain else error


def claimed_pixels(content: bytes) -> int:
    """Return the pixels that the header of a picture claims, the limit if it is invalid."""
    try:
        kind = picture_format(content, place="")
        size = webp_size(content) if kind == "WebP" else _READERS[kind](BytesIO(content)).size
    except Exception:  # noqa: BLE001 - decoders of strangers' bytes fail in every way there is
        size = None
    return MOST_PIXELS if size is None else size[0] * size[1]


def _loaded(content: bytes, kind: PictureFormat, *, place: str) -> Image.Image:
    check_frames(content, kind, place=place)
    if kind == "WebP":
        size = webp_size(content)
        if size is None:
            raise InvalidInput.at(place, "this WebP cannot be decoded: its header is invalid")
        check_size(*size, place=place)
    image = _READERS[kind](BytesIO(content))
    check_size(*image.size, place=place)
    if kind == "JPEG":
        check_scans(content, *image.size, place=place)
    image.load()
    return image


def _turn_upright(image: Image.Image) -> None:
    """Apply the orientation in the EXIF data; damaged data counts as none."""
    try:
        ImageOps.exif_transpose(image, in_place=True)
    except MemoryError:
        raise
    except Exception:  # noqa: BLE001, S110 - readers of strangers' bytes fail in every way there is
        pass


def _coloured(image: Image.Image, preprocessing: Preprocessing) -> Image.Image:
    mode = "L" if preprocessing.colour == "grey" else "RGB"
    if image.mode == "I;16":
        # Pillow clips these; of 16 bits of colour it keeps the upper eight, as is done here.
        image = Image.fromarray((np.asarray(image) >> 8).astype(np.uint8))
    if image.mode == mode:
        return image
    # Pillow would look for a colour that stands for transparent, and warns where there are many.
    image.info.pop("transparency", None)
    return image.convert(mode)

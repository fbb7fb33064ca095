"""Small PNG pictures of model inputs."""

from io import BytesIO

import numpy as np
from numpy.typing import NDArray
from PIL import Image

CHANNELS = (1, 3)
# A smaller array with an axis of one or three is more likely a list than a picture.
LEAST_SIDE = 4
_RANK = 3


def looks_like_picture(shape: tuple[int, ...]) -> bool:
    """Tell whether this shape can be a picture: one or three channels, first or last."""
    if len(shape) != _RANK:
        return False
    height_width = shape[1:] if shape[0] in CHANNELS else shape[:2]
    return (shape[0] in CHANNELS or shape[-1] in CHANNELS) and min(height_width) >= LEAST_SIDE


def shown_pixels(values: NDArray[np.generic]) -> NDArray[np.uint8]:
    """Return an input as pixels: the smallest value is black, the largest is white.

    Parameters
    ----------
    values : ndarray, shape (channels, height, width) or (height, width, channels)
        Finite. If both shapes fit, the first holds.

    Returns
    -------
    ndarray of uint8, shape (height, width, channels)
    """
    found = np.asarray(values, np.float64)
    if found.shape[0] in CHANNELS:
        found = np.moveaxis(found, 0, -1)
    least, largest = found.min(), found.max()
    # Halved first, because the difference of two finite numbers may overflow.
    spread = largest / 2 - least / 2
    if spread == 0:
        return np.zeros(found.shape, np.uint8)
    pixels: NDArray[np.uint8] = np.rint((found / 2 - least / 2) / spread * 255).astype(np.uint8)
    return pixels


def png(pixels: NDArray[np.uint8], *, most: int) -> bytes:
    """Return a picture as PNG, with sides of at most ``most`` pixels.

    Parameters
    ----------
    pixels : ndarray of uint8, shape (height, width, channels)
        Grey or RGB.
    """
    picture = Image.fromarray(pixels[..., 0] if pixels.shape[-1] == 1 else pixels)
    picture.thumbnail((most, most))
    written = BytesIO()
    picture.save(written, "PNG")
    return written.getvalue()

"""Pixels as a model takes them: scaled, standardised, in its channel order and layout."""

import numpy as np
from numpy.typing import NDArray

from howsure.preprocessing import Preprocessing


def model_values(pixels: NDArray[np.uint8], preprocessing: Preprocessing) -> NDArray[np.float32]:
    """Return pixels as the model's input, float32 in its layout.

    Parameters
    ----------
    pixels : ndarray of uint8, shape (n, height, width, channels)
        Red, green and blue, or one channel of grey.

    Returns
    -------
    ndarray of float32
        ``(pixels * scale - mean) / std``, with a factor and a term computed in float64.
    """
    mean, std = np.asarray(preprocessing.mean), np.asarray(preprocessing.std)
    factors = (preprocessing.scale / std).astype(np.float32)
    terms = (-mean / std).astype(np.float32)
    ordered = _in_order(pixels, preprocessing)
    values = np.empty(ordered.shape, dtype=np.float32)
    if preprocessing.layout == "nchw":
        factors, terms = factors[:, None, None], terms[:, None, None]
    for row, picture in zip(values, ordered, strict=True):  # each stays in the cache meanwhile
        np.multiply(picture, factors, out=row)
        np.add(row, terms, out=row)
    return values


def pixels_in_order(pixels: NDArray[np.uint8], preprocessing: Preprocessing) -> NDArray[np.uint8]:
    """Return the pixels, uint8, in the channels' order and the layout of the model."""
    return np.ascontiguousarray(_in_order(pixels, preprocessing))


def keeps_pixels(preprocessing: Preprocessing) -> bool:
    """Tell whether the values are the pixels themselves, 0 to 255."""
    is_plain = all(std == 1 for std in preprocessing.std) and not any(preprocessing.mean)
    return is_plain and preprocessing.scale == 1


def _in_order(pixels: NDArray[np.uint8], preprocessing: Preprocessing) -> NDArray[np.uint8]:
    if preprocessing.colour == "bgr":
        pixels = pixels[..., ::-1]
    if preprocessing.layout == "nchw":
        return np.moveaxis(pixels, -1, 1)
    return pixels[..., 0] if preprocessing.layout == "nhw" else pixels

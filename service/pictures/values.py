"""From pixels to what a model takes: scaled, standardised, in its channels' order and layout."""

import numpy as np
from numpy.typing import NDArray

from service.pictures.preprocessing import Preprocessing

_LOOK_UP_LEVELS = 256


def model_values(pixels: NDArray[np.uint8], preprocessing: Preprocessing) -> NDArray[np.float32]:
    """Return the model's input of pixels, float32 in its layout.

    Parameters
    ----------
    pixels : ndarray of uint8, shape (n, height, width, channels)
        Red, green and blue, or one channel of grey.

    Returns
    -------
    ndarray of float32
        ``(pixels * scale - mean) / std``, rounded once: it is reckoned in float64.
    """
    ordered = pixels_in_order(pixels, preprocessing)
    levels = np.arange(_LOOK_UP_LEVELS, dtype=np.float64) * preprocessing.scale
    values = np.empty(ordered.shape, dtype=np.float32)
    # Each channel has but 256 values.
    axis = _channel_axis(preprocessing)
    for channel, (mean, std) in enumerate(zip(*_channels(preprocessing), strict=True)):
        table = ((levels - mean) / std).astype(np.float32)
        if axis is None:
            return table[ordered]
        index = (slice(None),) * axis + (channel,)
        np.take(table, ordered[index], out=values[index], mode="clip")  # none is out of range
    return values


def pixels_in_order(pixels: NDArray[np.uint8], preprocessing: Preprocessing) -> NDArray[np.uint8]:
    """Return the pixels, uint8, in the channels' order and the layout of the model."""
    if preprocessing.colour == "bgr":
        pixels = pixels[..., ::-1]
    if preprocessing.layout == "nchw":
        pixels = np.moveaxis(pixels, -1, 1)
    elif preprocessing.layout == "nhw":
        pixels = pixels[..., 0]
    return np.ascontiguousarray(pixels)


def keeps_pixels(preprocessing: Preprocessing) -> bool:
    """Tell whether the values are the pixels themselves, 0 to 255."""
    means, stds = _channels(preprocessing)
    return preprocessing.scale == 1 and not any(means) and all(std == 1 for std in stds)


def _channels(preprocessing: Preprocessing) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Return mean and standard deviation of each channel.

    A description of grey pictures may be left with the three that mean nothing is done.
    """
    n = preprocessing.channels
    means, stds = preprocessing.mean, preprocessing.std
    return (means if len(means) == n else means[:n]), (stds if len(stds) == n else stds[:n])


def _channel_axis(preprocessing: Preprocessing) -> int | None:
    return {"nchw": 1, "nhwc": 3, "nhw": None}[preprocessing.layout]

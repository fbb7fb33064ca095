"""A kept sample as a picture, where it is one."""

import numpy as np

from service.operations.picked_samples import PickedSample
from service.pictures.preprocessing import PIXELS
from service.pictures.thumbnail import looks_like_picture, png, shown_pixels


def sample_picture(sample: PickedSample, *, most: int) -> bytes | None:
    """Return a PNG of the only input of a sample, no side longer than ``most``; None if it is none.

    Pixels are shown as they are, other values between the least and the largest of the sample.
    """
    if len(sample.inputs) != 1:
        return None
    [(name, values)] = sample.inputs.items()
    if not looks_like_picture(values.shape):
        return None
    is_pixels = name == PIXELS and values.dtype == np.uint8
    return png(values if is_pixels else shown_pixels(values), most=most)

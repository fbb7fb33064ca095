"""Pictures of one request as an array of pixels."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from howsure.preprocessing import Preprocessing
from service.child.pictures.claims import MOST_PIXELS
from service.child.pictures.decode import claimed_pixels, read_picture
from service.child.requests.limits import BodyLimits
from service.child.requests.predict_request import SentPicture
from service.errors import InvalidInput, TooLarge

# Per request. Decoding takes a few seconds, during which the model serves no other request.
MOST_REQUEST_PIXELS = 4 * MOST_PIXELS


def picture_rows(
    pictures: Sequence[SentPicture], preprocessing: Preprocessing, limits: BodyLimits
) -> NDArray[np.uint8]:
    """Return the pixels of all pictures, uint8 of shape (n, height, width, channels).

    Together they may have as many bytes as a body.

    Raises
    ------
    InvalidInput
        If one is not a picture, or they differ in size; the violation names the part.
    TooLarge
        If one picture is too large, or all of them together, before or after resizing, or they
        take too long.
    """
    left = MOST_REQUEST_PIXELS - _cost(pictures[0])
    first = read_picture(pictures[0].content, preprocessing, place=pictures[0].place)
    if first.nbytes * len(pictures) > limits.max_bytes:
        height, width, _ = first.shape
        raise TooLarge.at(
            "body",
            f"expected pictures of at most {limits.max_bytes} bytes in all once they are decoded, "
            f"got {len(pictures)} of {width} x {height}; send fewer at once",
        )
    pixels = np.empty((len(pictures), *first.shape), np.uint8)
    pixels[0] = first
    for row, picture in enumerate(pictures[1:], start=1):
        limits.check_time(picture.place)
        left -= _cost(picture)
        if left < 0:
            raise TooLarge.at(
                picture.place,
                f"expected pictures of at most {MOST_REQUEST_PIXELS // 10**6} megapixels in all, "
                "got more up to this one; send fewer at once",
            )
        found = read_picture(picture.content, preprocessing, place=picture.place)
        if found.shape != first.shape:
            raise InvalidInput.at(
                picture.place,
                f"this picture is of {found.shape[1]} x {found.shape[0]}, the first one of "
                f"{first.shape[1]} x {first.shape[0]}; preprocessing.crop brings them to one size",
            )
        pixels[row] = found
    return pixels


def _cost(picture: SentPicture) -> int:
    """Return the number of pixels to decode, at most the limit of one picture."""
    return min(claimed_pixels(picture.content), MOST_PIXELS)

"""Which kept samples are pictures, and what they look like."""

import io

import numpy as np
import pytest
from PIL import Image

from service.jobs.samples import PickedSample
from service.web.sample_rows import sample_picture

PIXELS = np.random.default_rng(2).integers(40, 200, (8, 6, 3), np.uint8)


def shown(**inputs: np.ndarray) -> np.ndarray | None:
    found = sample_picture(PickedSample(inputs, label=0, supplied={}), most=100)
    return None if found is None else np.asarray(Image.open(io.BytesIO(found)))


def test_pixels_are_as_they_are_and_other_values_as_far_apart_as_can_be() -> None:
    assert np.array_equal(shown(pixels=PIXELS), PIXELS)
    other = shown(image=PIXELS)
    assert (other.min(), other.max()) == (0, 255)


@pytest.mark.parametrize(
    "inputs", [{"a": PIXELS, "b": PIXELS}, {"a": PIXELS.ravel()}, {"a": PIXELS[..., :2]}]
)
def test_other_samples_are_no_pictures(inputs) -> None:
    assert shown(**inputs) is None

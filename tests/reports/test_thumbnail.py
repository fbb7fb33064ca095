"""Models' inputs as pictures for people."""

import io

import numpy as np
import pytest
from PIL import Image

from service.jobs.samples import PickedSample
from service.reports.thumbnail import looks_like_picture, png, shown_pixels
from service.web.sample_rows import sample_picture

SHAPES = [
    *(((1, 8, 8), True), ((3, 224, 224), True), ((224, 200, 3), True), ((28, 28, 1), True)),
    *(((64,), False), ((28, 28), False), ((4, 8, 8), False), ((3, 2, 100), False)),
    *(((100, 3, 3), False), ((1, 3, 8, 8), False)),
]


@pytest.mark.parametrize(("shape", "is_picture"), SHAPES)
def test_what_is_a_picture(shape: tuple[int, ...], *, is_picture: bool) -> None:
    assert looks_like_picture(shape) == is_picture


@pytest.mark.parametrize("dtype", [np.float32, np.uint8, np.float16, np.int64, np.bool_])
def test_the_least_value_is_black_and_the_largest_white(dtype: type) -> None:
    values = (np.arange(48).reshape(3, 4, 4) % 5).astype(dtype)
    pixels = shown_pixels(values)
    assert pixels.shape == (4, 4, 3)
    assert (pixels.min(), pixels.max()) == (0, 255)
    assert pixels[0, 0].tolist() == shown_pixels(np.moveaxis(values, 0, -1))[0, 0].tolist()


def test_any_finite_numbers_will_do() -> None:
    huge = np.full((1, 4, 4), -1.7e308)
    huge[0, 0, 0] = 1.7e308
    assert sorted(set(shown_pixels(huge).ravel().tolist())) == [0, 255]
    assert not shown_pixels(np.full((1, 4, 4), 0.3)).any()


@pytest.mark.parametrize("channels", [1, 3])
def test_a_file_has_the_pixels_or_is_made_smaller(channels: int) -> None:
    pixels = np.random.default_rng(1).integers(0, 256, (300, 200, channels), np.uint8)
    found = Image.open(io.BytesIO(png(pixels[:50, :40], most=64)))
    assert np.array_equal(np.asarray(found).reshape(50, 40, channels), pixels[:50, :40])
    assert Image.open(io.BytesIO(png(pixels, most=60))).size == (40, 60)


PIXELS = np.random.default_rng(2).integers(40, 200, (8, 6, 3), np.uint8)


def picture_of(**inputs: np.ndarray) -> np.ndarray | None:
    content = sample_picture(PickedSample(inputs, label=0, supplied={}), most=100)
    return None if content is None else np.asarray(Image.open(io.BytesIO(content)))


def test_pixels_are_as_they_are_and_other_values_as_far_apart_as_can_be() -> None:
    assert np.array_equal(picture_of(pixels=PIXELS), PIXELS)
    other = picture_of(image=PIXELS)
    assert (other.min(), other.max()) == (0, 255)


@pytest.mark.parametrize(
    "inputs", [{"a": PIXELS, "b": PIXELS}, {"a": PIXELS.ravel()}, {"a": PIXELS[..., :2]}]
)
def test_other_samples_are_no_pictures(inputs) -> None:
    assert picture_of(**inputs) is None

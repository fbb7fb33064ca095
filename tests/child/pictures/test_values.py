"""A preset makes of a picture what torchvision's transforms make of it, within 1/255."""

from typing import Any

import numpy as np
import pytest
from picture_files import encoded, jpeg, reference_values, scene

from service.child.pictures.decode import read_picture
from service.child.pictures.values import keeps_pixels, model_values, pixels_in_order
from service.runner.messages.preprocessing import PRESETS, Preprocessing

SIZES = [(300, 200), (201, 333), (256, 256), (97, 640), (224, 225), (31, 30)]
REFERENCES: dict[str, dict[str, Any]] = {
    "imagenet": {
        "shorter_side": 256,
        "side": 224,
        "mean": (0.485, 0.456, 0.406),
        "std": (0.229, 0.224, 0.225),
    },
    "clip": {
        "shorter_side": 224,
        "side": 224,
        "mean": (0.48145466, 0.4578275, 0.40821073),
        "std": (0.26862954, 0.26130258, 0.27577711),
        "filter_name": "BICUBIC",
    },
}


@pytest.mark.parametrize("preset", REFERENCES)
@pytest.mark.parametrize("kind", ["JPEG", "PNG", "WEBP"])
def test_presets_give_the_values_of_the_transforms_they_are_named_after(preset, kind):
    preprocessing = PRESETS[preset]
    for seed, (width, height) in enumerate(SIZES):
        content = encoded(scene(width, height, seed=seed), kind)
        pixels = read_picture(content, preprocessing, place="body")
        assert pixels.shape == (224, 224, 3)
        values = model_values(pixels[None], preprocessing)
        assert values.dtype == np.float32
        expected = reference_values(content, **REFERENCES[preset])
        # Pillow's own pixels, so that nothing but the last bits may differ.
        np.testing.assert_allclose(values[0], expected, atol=1e-5)


def test_every_preset_has_a_reference():
    assert PRESETS.keys() == {*REFERENCES, "unit", "none"}


@pytest.mark.parametrize(("preset", "divisor"), [("none", 1.0), ("unit", 255.0)])
def test_presets_without_a_crop_keep_the_size(preset, divisor):
    picture = scene(20, 10)
    pixels = read_picture(encoded(picture, "PNG"), PRESETS[preset], place="body")
    expected = picture.transpose(2, 0, 1) / np.float32(divisor)
    np.testing.assert_allclose(model_values(pixels[None], PRESETS[preset])[0], expected, rtol=1e-6)


def test_the_preset_none_keeps_pixels():
    picture = scene(20, 10)
    pixels = read_picture(encoded(picture, "PNG"), PRESETS["none"], place="body")
    np.testing.assert_array_equal(pixels, picture)
    assert keeps_pixels(PRESETS["none"])
    np.testing.assert_array_equal(
        model_values(pixels[None], PRESETS["none"])[0], picture.transpose(2, 0, 1)
    )
    assert not keeps_pixels(PRESETS["imagenet"])


@pytest.mark.parametrize("layout", ["nchw", "nhwc"])
@pytest.mark.parametrize("colour", ["rgb", "bgr"])
def test_channels_come_in_the_models_order_and_layout(colour, layout):
    picture = scene(8, 6)
    mean, std = (0.1, 0.2, 0.3), (1.0, 2.0, 4.0)
    given = Preprocessing(colour=colour, layout=layout, scale=0.5, mean=mean, std=std)
    pixels = read_picture(encoded(picture, "PNG"), given, place="body")
    np.testing.assert_array_equal(pixels, picture)  # the order of the model comes with values
    ordered = picture[..., ::-1] if colour == "bgr" else picture
    expected = (ordered * 0.5 - np.array(mean)) / np.array(std)
    if layout == "nchw":
        expected, ordered = expected.transpose(2, 0, 1), ordered.transpose(2, 0, 1)
    np.testing.assert_allclose(model_values(pixels[None], given)[0], expected, rtol=1e-6, atol=1e-6)
    np.testing.assert_array_equal(pixels_in_order(pixels[None], given)[0], ordered)


@pytest.mark.parametrize(
    ("layout", "shape"), [("nchw", (2, 1, 6, 8)), ("nhwc", (2, 6, 8, 1)), ("nhw", (2, 6, 8))]
)
def test_grey_pictures_have_one_channel_or_no_axis_for_it(layout, shape):
    given = Preprocessing(colour="grey", layout=layout, scale=2.0, mean=(3.0,), std=(0.5,))
    picture = np.random.default_rng(1).integers(0, 256, (6, 8), dtype=np.uint8)
    pixels = read_picture(encoded(picture, "PNG"), given, place="body")
    assert pixels.shape == (6, 8, 1)
    values = model_values(np.stack([pixels, pixels]), given)
    assert values.shape == shape
    np.testing.assert_allclose(
        values[1].reshape(6, 8), (picture * 2.0 - 3.0) / 0.5, rtol=1e-6, atol=1e-6
    )


def test_both_sides_of_a_size_may_be_given():
    given = Preprocessing(resize=(10, 30), interpolation="lanczos")
    assert read_picture(jpeg(64, 64), given, place="body").shape == (10, 30, 3)

"""A preset makes of a picture what torchvision's transforms make of it, within 1/255."""

from itertools import product
from typing import Any

import numpy as np
import pytest
from picture_files import encoded, jpeg, reference_values, scene

from howsure.preprocessing import PRESETS, Preprocessing
from service.child.pictures.decode import read_picture
from service.child.pictures.values import keeps_pixels, model_values, pixels_in_order

SIZES = [(300, 200), (201, 333), (256, 256), (97, 640), (224, 225), (31, 30)]
REFERENCES: dict[str, dict[str, Any]] = {
    "imagenet": {"shorter_side": 256, "mean": (0.485, 0.456, 0.406)},
    "clip": {"shorter_side": 224, "mean": (0.48145466, 0.4578275, 0.40821073)},
}
REFERENCES["imagenet"] |= {"std": (0.229, 0.224, 0.225)}
REFERENCES["clip"] |= {"std": (0.26862954, 0.26130258, 0.27577711), "filter_name": "BICUBIC"}


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("preset", REFERENCES)
@pytest.mark.parametrize("kind", ["JPEG", "PNG", "WEBP"])
def test_presets_give_the_values_of_the_transforms_they_are_named_after(preset, kind, size):
    preprocessing = PRESETS[preset]
    content = encoded(scene(*size), kind)
    pixels = read_picture(content, preprocessing, place="body")
    assert pixels.shape == (224, 224, 3)
    values = model_values(pixels[None], preprocessing)
    assert values.dtype == np.float32
    # Pillow's own pixels, so that nothing but the last bits may differ.
    expected = reference_values(content, side=224, **REFERENCES[preset])
    np.testing.assert_allclose(values[0], expected, atol=1e-5)


def test_every_preset_has_a_reference():
    assert PRESETS.keys() == {*REFERENCES, "unit", "none"}
    assert (PRESETS["none"].scale, PRESETS["unit"].scale) == (1.0, 1 / 255)
    assert {name for name, preset in PRESETS.items() if keeps_pixels(preset)} == {"none"}


OF_COLOURS = {"scale": 0.5, "mean": (0.1, 0.2, 0.3), "std": (1.0, 2.0, 4.0)}
OF_GREY = {"colour": "grey", "scale": 2.0, "mean": (3.0,), "std": (0.5,)}
LAYOUTS = [PRESETS["none"], PRESETS["unit"]]
ORDERS = product(("rgb", "bgr"), ("nchw", "nhwc"))
LAYOUTS += [Preprocessing(colour=colour, layout=axes, **OF_COLOURS) for colour, axes in ORDERS]
LAYOUTS += [Preprocessing(layout=layout, **OF_GREY) for layout in ("nchw", "nhwc", "nhw")]


@pytest.mark.parametrize("preprocessing", LAYOUTS)
def test_channels_come_in_the_models_order_and_layout(preprocessing):
    picture = scene(8, 6)[..., : 1 if preprocessing.colour == "grey" else 3]
    pixels = read_picture(encoded(picture.squeeze(), "PNG"), preprocessing, place="body")
    np.testing.assert_array_equal(pixels, picture)  # the order of the model comes with values
    ordered = picture[..., ::-1] if preprocessing.colour == "bgr" else picture
    mean, std = np.array(preprocessing.mean), np.array(preprocessing.std)
    expected = (ordered * preprocessing.scale - mean) / std
    axes = {"nchw": "hwc->chw", "nhwc": "hwc->hwc", "nhw": "hwc->hw"}[preprocessing.layout]
    values = model_values(np.stack([pixels, pixels]), preprocessing)
    expected, ordered = np.einsum(axes, expected), np.einsum(axes, ordered)
    np.testing.assert_allclose(values, [expected] * 2, rtol=1e-6, atol=1e-6)
    np.testing.assert_array_equal(pixels_in_order(pixels[None], preprocessing)[0], ordered)


def test_both_sides_of_a_size_may_be_given():
    resized = Preprocessing(resize=(10, 30), interpolation="lanczos")
    assert read_picture(jpeg(64, 64), resized, place="body").shape == (10, 30, 3)

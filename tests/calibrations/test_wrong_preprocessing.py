"""Pictures that are prepared in another way than in training: found, and mended by the remedy."""

import json
import shlex

import numpy as np
import pytest
from colour_pictures import HALVES, IMAGENET, colour_model, colour_set, zip_of
from running_service import calibrated, npz, quick_config

from howsure.remedies import remedy_of

UNIT = 1 / 255
RIGHT = {"scale": UNIT, "mean": [*IMAGENET[0]], "std": [*IMAGENET[1]]}


def findings(client, model, content, **config):
    made = calibrated(client, quick_config(bins=5, **config), model=model, calibration=content)
    return made, made["findings"]


def mended(client, model, content, **asked):
    """Return the finding, and the preprocessing of its remedy, with which nothing is found."""
    made, (found, *_) = findings(client, model, content, preprocessing=asked)
    assert found["code"] == "wrong-preprocessing", found
    figures = found["figures"]
    assert figures["prepared_accuracy"] > figures["accuracy"] + 0.1
    words = shlex.split(remedy_of(found, made).code)
    right = json.loads(words[words.index("--preprocessing") + 1])
    assert findings(client, model, content, preprocessing=right)[1] == []
    return found, right


@pytest.mark.parametrize(
    "asked",
    [
        {**RIGHT, "scale": 1},
        {"scale": UNIT, "mean": [*HALVES[0]], "std": [*HALVES[1]]},
        {"scale": UNIT, "mean": [123.675, 116.28, 103.53], "std": [58.395, 57.12, 57.375]},
        {"scale": 1},
        {"scale": UNIT},
    ],
    ids=["unscaled", "halves", "mean of 255", "raw", "plain"],
)
def test_pictures_for_a_model_of_imagenet(client, asked):
    pixels, labels = colour_set(1500)
    content = zip_of(pixels, labels)
    found, right = mended(client, colour_model(*IMAGENET), content, **asked)
    assert "256 samples give a Top-1 accuracy of" in found["message"]
    for key in ("mean", "std"):
        of_pixels, expected = (np.array(found[key]) / found["scale"] for found in (right, RIGHT))
        np.testing.assert_allclose(of_pixels, expected, rtol=0.01)
    assert right["colour"] == "rgb"


@pytest.mark.parametrize("model", [((0.0,) * 3, (1.0,) * 3), HALVES, IMAGENET])
def test_nothing_is_found_where_the_model_has_its_own_preprocessing(client, model):
    pixels, labels = colour_set(1500)
    mean, std = model
    asked = {"scale": UNIT, "mean": [*mean], "std": [*std]}
    content = zip_of(pixels, labels)
    assert findings(client, colour_model(mean, std), content, preprocessing=asked)[1] == []


def channels(pixels):
    """Return pictures whose red channel alone tells the classes apart."""
    grey = np.random.default_rng(7).integers(60, 190, pixels.shape, dtype=np.uint8)
    return np.concatenate([pixels[..., :1], grey[..., 1:]], axis=-1)


def test_channels_in_the_wrong_order(client):
    pixels, labels = colour_set(1500)
    step = [-1.0, 1.0, 0.0, 2.0, 0.3]
    content = zip_of(pixels[..., ::-1], labels)
    assert step
    found, right = mended(client, colour_model(*IMAGENET), content, **RIGHT)
    assert right["colour"] == "bgr"


def changed(client, inputs, labels, model, change):
    """Return the finding on changed arrays, which the lines of its remedy undo."""
    sent = np.ascontiguousarray(change(inputs))
    made, (found, *_) = findings(client, model, npz(inputs=sent, labels=labels))
    assert found["code"] == "wrong-preprocessing"
    scope = {"numpy": np, "inputs": sent}
    exec(remedy_of(found, made).code, scope)  # noqa: S102 - our own lines
    np.testing.assert_allclose(scope["inputs"], inputs, atol=1e-6)

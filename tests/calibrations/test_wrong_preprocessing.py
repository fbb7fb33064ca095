"""Pictures that are prepared in another way than in training: found, and mended by the remedy."""

import json
import shlex

import numpy as np
import pytest
from colour_pictures import HALVES, IMAGENET, colour_model, colour_set, zip_of
from faulty_uploads import with_factor
from graph_models import constant, make_model, node, value
from remedy_lines import followed
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


NOISE = 0.6


def patterns(n_channels, *, seed=0):
    """Return pixels [n, 8, 8, channels] from 0 to 255 of four patterns, labels, and a model.

    The model is the best for inputs [n, channels, 8, 8] from 0 to 1.
    """
    rng = np.random.default_rng(seed)
    centres = rng.uniform(0.3, 0.7, (4, n_channels, 8, 8))
    labels = rng.integers(0, 4, 1500)
    noise = NOISE * rng.normal(size=(1500, n_channels, 8, 8)).clip(-0.5, 0.5)
    pixels = np.round(255 * (centres[labels] + noise).clip(0, 1)).astype(np.uint8)
    flat = centres.reshape(4, -1)
    precision = 1 / (0.4 * NOISE) ** 2
    model = make_model(
        [node("Flatten", ["x"], ["flat"]), node("Gemm", ["flat", "w", "b"], ["y"])],
        inputs=[value("x", ("N", n_channels, 8, 8))],
        outputs=[value("y", ("N", 4))],
        initializers=[
            constant("w", precision * flat.T),
            constant("b", -0.5 * precision * (flat**2).sum(axis=1)),
        ],
    )
    labels[0] = (labels[0] + 1) % 4  # a set without any error would be remarkable
    return pixels.transpose(0, 2, 3, 1), labels, model.SerializeToString()


def test_channels_in_the_wrong_order(client):
    pixels, labels, model = patterns(3)
    content = zip_of(pixels, labels)
    _, right = mended(client, model, content, scale=UNIT, colour="bgr")
    assert right["colour"] == "rgb"
    assert right["scale"] == UNIT


def test_pictures_in_white_on_black(client):
    pixels, labels, model = patterns(1)
    asked = {"colour": "grey", "scale": UNIT}
    content = zip_of(255 - pixels[..., 0], labels)
    made, (found, *_) = findings(client, model, content, preprocessing=asked)
    assert found["code"] == "wrong-preprocessing"
    assert "With each value subtracted from 255" in found["message"]
    assert remedy_of(found, made).code.startswith("picture = PIL.ImageOps.invert(")
    assert findings(client, model, zip_of(pixels[..., 0], labels), preprocessing=asked)[1] == []


@pytest.mark.parametrize("most", [1.0, 255.0])
@pytest.mark.parametrize(
    "change",
    [
        lambda inputs, most: most - inputs,
        lambda inputs, _: inputs.swapaxes(2, 3),
        lambda inputs, _: inputs[:, ::-1],
    ],
    ids=["inverted", "swapped", "reversed"],
)
def test_the_remedy_mends_arrays(client, change, most):
    pixels, labels, model = patterns(3)
    inputs = (pixels.transpose(0, 3, 1, 2) * (most / 255)).astype(np.float32)
    if most > 1:
        model = with_factor(model, UNIT)
    sent = np.ascontiguousarray(change(inputs, most), dtype=np.float32)
    made, (found, *_) = findings(client, model, npz(inputs=sent, labels=labels))
    assert found["code"] == "wrong-preprocessing"
    mended_inputs = followed(remedy_of(found, made).code, inputs=sent)["inputs"]
    np.testing.assert_allclose(mended_inputs, inputs, atol=1e-6)
    assert findings(client, model, npz(inputs=inputs, labels=labels))[1] == []


# Red, green and blue; with orange, reversed channels are no other order of the classes.
@pytest.mark.parametrize(
    ("colours", "codes"),
    [
        ([[1, 0, 0], [0, 1, 0], [0, 0, 1]], ["wrong-preprocessing", "labels-permuted"]),
        ([[1, 0, 0], [0, 1, 0], [0, 0, 1], [0.9, 0.7, 0]], ["wrong-preprocessing"]),
    ],
)
def test_labels_are_doubted_only_where_they_explain_as_much(client, colours, codes):
    rng = np.random.default_rng(4)
    labels = rng.integers(0, len(colours), 1200)
    seen = np.array(colours)[labels] + rng.normal(0, 0.1, (1200, 3))
    pictures = np.broadcast_to(seen[:, ::-1, None, None], (1200, 3, 4, 4)).astype(np.float32)
    centres = np.array(colours, np.float32)
    model = make_model(
        [
            node("ReduceMean", ["x"], ["colour"], axes=[2, 3], keepdims=0),
            node("Gemm", ["colour", "w", "b"], ["y"]),
        ],
        inputs=[value("x", ("N", 3, 4, 4))],
        outputs=[value("y", ("N", len(colours)))],
        initializers=[
            constant("w", 40 * centres.T),
            constant("b", -20 * (centres**2).sum(axis=1)),
        ],
    )
    made = calibrated(
        client,
        quick_config(),
        model=model.SerializeToString(),
        calibration=npz(x=pictures, labels=labels),
    )
    told = [one["code"] for one in made["findings"]]
    assert [code for code in told if code in ("wrong-preprocessing", "labels-permuted")] == codes

"""Pictures that are prepared in another way than in training: found, and mended by the remedy."""

import json
import shlex

import numpy as np
import pytest
from colour_pictures import HALVES, IMAGENET, colour_model, colour_set, zip_of
from faulty_uploads import with_factor
from graph_models import steps
from remedy_lines import followed
from runner_models import of_rows
from running_service import dry_run, npz

from howsure.remedies import remedy_of

UNIT = 1 / 255
N_SAMPLES = 300
RIGHT = {"scale": UNIT, "mean": [*IMAGENET[0]], "std": [*IMAGENET[1]]}


def findings(client, model, content, **config):
    resource = dry_run(client, content, model=model, **config).raise_for_status().json()
    return resource, [one for one in resource["findings"] if one["level"] == "warning"]


def mended(client, model, content, **preprocessing):
    """Return the preprocessing of the finding's remedy, with which nothing is found."""
    made, (finding, *_) = findings(client, model, content, preprocessing=preprocessing)
    assert finding["code"] == "wrong-preprocessing", finding
    figures = finding["figures"]
    assert figures["prepared_accuracy"] > figures["accuracy"] + 0.1
    words = shlex.split(remedy_of(finding, made).code)
    right = json.loads(words[words.index("--preprocessing") + 1])
    assert findings(client, model, content, preprocessing=right)[1] == []
    return right


OF_BYTES = {"mean": [123.675, 116.28, 103.53], "std": [58.395, 57.12, 57.375]}
WRONG = {
    "unscaled": {**RIGHT, "scale": 1},
    "mean of 255": {"scale": UNIT, **OF_BYTES},
    "halves": {"scale": UNIT, "mean": [*HALVES[0]], "std": [*HALVES[1]]},
}


@pytest.mark.parametrize("preprocessing", WRONG.values(), ids=WRONG)
def test_pictures_for_a_model_of_imagenet(client, preprocessing):
    content = zip_of(*colour_set(N_SAMPLES))
    right = mended(client, colour_model(*IMAGENET), content, **preprocessing)
    for key in ("mean", "std"):
        of_pixels, expected = (np.array(one[key]) / one["scale"] for one in (right, RIGHT))
        np.testing.assert_allclose(of_pixels, expected, rtol=0.01)
    assert right["colour"] == "rgb"


NOISE = 0.6


def patterns(n_channels, *, seed=0):
    """Return pixels [n, 8, 8, channels] from 0 to 255 of four patterns, labels, and a model.

    The model is the best for inputs [n, channels, 8, 8] from 0 to 1.
    """
    rng = np.random.default_rng(seed)
    centres = rng.uniform(0.3, 0.7, (4, n_channels, 8, 8))
    labels = rng.integers(0, 4, N_SAMPLES)
    noise = NOISE * rng.normal(size=(N_SAMPLES, n_channels, 8, 8)).clip(-0.5, 0.5)
    pixels = np.round(255 * (centres[labels] + noise).clip(0, 1)).astype(np.uint8)
    flat = centres.reshape(4, -1)
    precision = 1 / (0.4 * NOISE) ** 2
    constants = {"w": precision * flat.T, "b": -0.5 * precision * (flat**2).sum(axis=1)}
    nodes = steps("flat = Flatten(x); y = Gemm(flat, w, b)")
    model = of_rows(*nodes, shape=("N", n_channels, 8, 8), **constants)
    return pixels.transpose(0, 2, 3, 1), labels, model.SerializeToString()


def test_channels_in_the_wrong_order(client):
    pixels, labels, model = patterns(3)
    right = mended(client, model, zip_of(pixels, labels), scale=UNIT, colour="bgr")
    assert (right["colour"], right["scale"]) == ("rgb", UNIT)


CHANGES = {
    "inverted bytes": (lambda inputs: 255.0 - inputs, 255.0),
    "inverted": (lambda inputs: 1.0 - inputs, 1.0),
    "swapped": (lambda inputs: inputs.swapaxes(2, 3), 1.0),
    "reversed": (lambda inputs: inputs[:, ::-1], 255.0),
}


@pytest.mark.parametrize(("change", "most"), CHANGES.values(), ids=CHANGES)
def test_the_remedy_mends_arrays(client, change, most):
    pixels, labels, model = patterns(3)
    inputs = (pixels.transpose(0, 3, 1, 2) * (most / 255)).astype(np.float32)
    if most > 1:
        model = with_factor(model, UNIT)
    sent = np.ascontiguousarray(change(inputs), dtype=np.float32)
    made, (finding, *_) = findings(client, model, npz(inputs=sent, labels=labels))
    assert finding["code"] == "wrong-preprocessing"
    mended_inputs = followed(remedy_of(finding, made).code, inputs=sent)["inputs"]
    np.testing.assert_allclose(mended_inputs, inputs, atol=1e-6)


# Red, green and blue; with orange, reversed channels are no other order of the classes.

COLOURS = [
    ([[1, 0, 0], [0, 1, 0], [0, 0, 1]], ["wrong-preprocessing", "labels-permuted"]),
    ([[1, 0, 0], [0, 1, 0], [0, 0, 1], [0.9, 0.7, 0]], ["wrong-preprocessing"]),
]


@pytest.mark.parametrize(("colours", "codes"), COLOURS)
def test_labels_are_doubted_only_where_they_explain_as_much(client, colours, codes):
    rng = np.random.default_rng(4)
    labels = rng.integers(0, len(colours), 300)
    seen = np.array(colours)[labels] + rng.normal(0, 0.1, (300, 3))
    pictures = np.broadcast_to(seen[:, ::-1, None, None], (300, 3, 4, 4)).astype(np.float32)
    centres = np.array(colours, np.float32)
    constants = {"w": 40 * centres.T, "b": -20 * (centres**2).sum(axis=1)}
    nodes = steps("c = ReduceMean<axes = [2, 3], keepdims = 0>(x); y = Gemm(c, w, b)")
    model = of_rows(*nodes, shape=("N", 3, 4, 4), **constants)
    content = npz(x=pictures, labels=labels)
    _, doubts = findings(client, model.SerializeToString(), content)
    reported = [finding["code"] for finding in doubts]
    assert [one for one in reported if one in ("wrong-preprocessing", "labels-permuted")] == codes

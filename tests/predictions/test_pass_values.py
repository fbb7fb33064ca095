"""What is served of passes, against second ways to the same numbers."""

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper
from pass_service import (
    CASES,
    MEMBERS,
    PASSES,
    Case,
    as_file,
    calibrate_models,
    labelled_sets,
    model_file,
    predictions,
    probabilities,
    spread,
    started,
    uncertainties,
)

from howsure.statistics.measures.noise import keep_mask

SETS = labelled_sets()
ROWS = SETS["evaluation_inputs"][:40]


def test_an_ensemble_is_the_mean_of_its_members(client) -> None:
    found = started(client, CASES["ensemble"])
    passes = np.stack([probabilities(model_file(name), ROWS) for name in MEMBERS])
    answers = predictions(client, found["id"], ROWS)

    np.testing.assert_allclose(uncertainties(answers), spread(passes), rtol=1e-4, atol=1e-12)
    mean = passes.mean(axis=0)
    assert [p["class"] for p in answers] == mean.argmax(axis=1).tolist()
    scores = [p["classes"][0]["score"] for p in answers]
    np.testing.assert_allclose(scores, mean.max(axis=1), rtol=1e-5)
    calibrated = np.stack(
        [probabilities(model_file(name), SETS["calibration_inputs"]) for name in MEMBERS]
    ).mean(axis=0)
    right = calibrated.argmax(axis=1) == SETS["calibration_labels"]
    assert found["accuracy"]["1"] == pytest.approx(right.mean(), abs=1e-12)


def test_an_ensemble_predicts_by_its_mean_whatever_is_measured(client) -> None:
    config = {"measures": ["entropy", "margin"], "serve": {"1": "entropy"}}
    models = [model_file(name) for name in MEMBERS]
    answer = calibrate_models(client, models, config, calibration=as_file(SETS))
    found = answer.json()
    assert found["status"] == "succeeded", found
    mean = np.stack([probabilities(model, ROWS) for model in models]).mean(axis=0)
    entropy = -(mean * np.log(mean)).sum(axis=1)
    answers = predictions(client, found["id"], ROWS)
    np.testing.assert_allclose(uncertainties(answers), entropy, rtol=1e-4)


def masked(model: onnx.ModelProto, rates: list[float], number: int) -> onnx.ModelProto:
    """Return the model with each Dropout replaced by a constant mask: a second way to a pass."""
    made = onnx.ModelProto()
    made.CopyFrom(model)
    shapes = {2: (1, 64), 4: (1, 8, 4, 4)}
    ranks = iter([4, 2])
    for site, rate in enumerate(rates):
        node = next(n for n in made.graph.node if n.op_type == "Dropout")
        shape = shapes[next(ranks)]
        mask = keep_mask(shape, rate=rate, seed=0, number=number, site=site)
        made.graph.initializer.append(numpy_helper.from_array(mask, f"mask_{site}"))
        node.CopyFrom(helper.make_node("Mul", [node.input[0], f"mask_{site}"], node.output[:1]))
    return made


def test_dropout_is_the_variance_over_masked_models(client) -> None:
    found = started(client, CASES["dropout"])
    model = onnx.load_from_string(model_file("hidden_dropout_cnn.onnx"))
    passes = np.stack([probabilities(masked(model, [0.1, 0.3], m), ROWS) for m in range(6)])
    answers = predictions(client, found["id"], ROWS)

    np.testing.assert_allclose(uncertainties(answers), spread(passes), rtol=1e-4, atol=1e-12)
    base = masked(model, [0.0, 0.0], 0)
    classes = probabilities(base, ROWS).argmax(axis=1)
    assert [p["class"] for p in answers] == classes.tolist()


def test_dropout_before_the_last_layer_is_last_layer_dropout(client) -> None:
    both = [
        started(client, Case(measure, ("last_layer_dropout_cnn.onnx",), {}, 0))
        for measure in ("dropout_variance", "last_layer_dropout_variance")
    ]
    one, two = (uncertainties(predictions(client, found["id"], ROWS)) for found in both)
    np.testing.assert_allclose(one, two, rtol=1e-3, atol=1e-12)


def test_as_many_directions_as_values_give_the_gradient(client) -> None:
    found = started(client, CASES["gradient"], gradient={"directions": 64})
    gradients = np.load(PASSES / "gradients.npz")
    answers = predictions(client, found["id"], gradients["inputs"])

    exact = gradients["gradient_norm"]
    errors = np.abs(uncertainties(answers) / exact - 1)
    # A step may straddle a kink of ReLU or MaxPool: then there is no one gradient.
    assert np.quantile(errors, 0.9) < 0.02
    assert errors.max() < 0.1

"""Batches of models that run more than once: a row's answer is its own, whatever is beside it."""

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from asked_queue import AskedQueue, load_here

from service.runner.messages.onnx_models import OnnxMember, OnnxModelFiles
from service.runner.messages.passes import PassPlan

FOLDER = Path(__file__).parents[1] / "data" / "passes"
X = np.load(FOLDER / "digits_passes.npz")["evaluation_inputs"][:40]
PLANS = {
    "hidden_dropout_cnn": PassPlan("dropout_variance", passes=5, seed=0),
    "last_layer_dropout_cnn": PassPlan("last_layer_dropout_variance", passes=5, seed=0),
    "small_cnn": PassPlan("gradient_norm", passes=4, seed=0, step=1e-3),
    "member_0": PassPlan("ensemble_variance", passes=5, seed=0),
}


@pytest.fixture(scope="module", params=PLANS)
def model(request):
    members = ()
    if request.param == "member_0":
        members = tuple(OnnxMember(FOLDER / f"member_{n}.onnx") for n in (1, 2))
    files = OnnxModelFiles(FOLDER / f"{request.param}.onnx", members=members)
    return load_here(files, {"inputs": X}, passes=[PLANS[request.param]])


def name_of(model):
    return model.description.inputs[0].name


def test_rows_of_a_batch_answer_as_they_do_alone(model):
    queue = AskedQueue(model, run_rows=16)
    cuts = [0, 1, 4, 24, 30, 40]
    parts = [slice(a, b) for a, b in pairwise(cuts)]
    numbers = [queue.put_rows(**{name_of(model): X[part]}) for part in parts]
    queue.all()
    whole = model.answer(
        model.inputs.fitted({"inputs": X}, location="inputs", start=0), location="inputs", start=0
    )
    for number, part in zip(numbers, parts, strict=True):
        found = queue.answers[number]
        np.testing.assert_array_equal(found.top_classes, whole["howsure_top_classes"][part])
        for name, column in found.uncertainty.items():
            expected = whole[f"howsure_{name}"][part]
            np.testing.assert_allclose(column, expected, rtol=2e-3, atol=1e-6, err_msg=name)


def test_rows_without_an_answer_fail_nobody_beside_them(model):
    queue = AskedQueue(model, run_rows=16)
    bad = X[:3].copy()
    bad[1] = np.where(np.arange(bad[1].size).reshape(bad[1].shape) % 2, 3e38, -3e38)
    good, wrong = (queue.put_rows(**{name_of(model): rows}) for rows in (X[:5], bad))
    queue.all()
    assert queue.answers.keys() == {good}
    assert queue.refusals[wrong].violations[0].location == "inputs[1]"

"""The gradient norm of models whose rows are of many lengths, or hold no number."""

import numpy as np
import pytest
from graph_models import constant, make_model, node, value
from runner_models import save
from scipy.special import softmax

from service.errors import InvalidInput
from service.runner.messages.passes import PassPlan

N_VALUES, N_CLASSES = 4, 3
WEIGHTS = np.random.default_rng(0).normal(size=(N_VALUES, N_CLASSES)).astype(np.float32)


def sequences(n_rows, length):
    return np.random.default_rng(length).normal(size=(n_rows, length, N_VALUES)).astype(np.float32)


def mean_over_time():
    nodes = [
        node("ReduceMean", ["x"], ["mean"], axes=[1], keepdims=0),
        node("MatMul", ["mean", "W"], ["y"]),
    ]
    return make_model(
        nodes, inputs=[value("x", ("N", "T", N_VALUES))], initializers=[constant("W", WEIGHTS)]
    )


def exact_norms(x):
    """Return ``||d ||p||_2 / dx||_2`` of `mean_over_time` by hand."""
    p = softmax(x.astype(float).mean(axis=1) @ WEIGHTS, axis=1)
    norm = np.sqrt((p**2).sum(axis=1, keepdims=True))
    of_mean = (p * (p - norm**2) / norm) @ WEIGHTS.T
    return np.linalg.norm(of_mean, axis=1) / np.sqrt(x.shape[1])


@pytest.mark.parametrize(("planned", "asked"), [(20, 16), (20, 3), (16, 20), (16, 3)])
def test_text_of_another_length_than_the_first_rows(pool, tmp_path, planned, asked):
    files = save(tmp_path, mean_over_time())
    plan = PassPlan("gradient_norm", passes=64, seed=0, step=1e-3)
    found = pool.inspect(files, top_k=(1,), passes=(plan,), trial={"x": sequences(20, planned)})
    x = sequences(30, asked)
    norms = pool.predict(files, found.resolved, {"x": x}).uncertainty["gradient_norm"]
    ratio = norms / exact_norms(x)
    assert np.all((ratio > 0.6) & (ratio < 1.5))
    records = pool.record(files, found.resolved, {"x": x}, np.zeros(30, np.int64), seed=0)
    np.testing.assert_allclose(records.uncertainty["gradient_norm"], norms, rtol=1e-3)


@pytest.mark.parametrize("directions", [2, 16])
def test_values_that_are_missing_set_no_scale(pool, tmp_path, directions):
    nodes = [
        node("IsNaN", ["x"], ["missing"]),
        node("Where", ["missing", "nothing", "x"], ["known"]),
        node("MatMul", ["known", "W"], ["y"]),
    ]
    model = make_model(
        nodes,
        inputs=[value("x", ("N", N_VALUES))],
        initializers=[constant("W", WEIGHTS), constant("nothing", 0)],
    )
    x = sequences(50, 1)[:, 0]
    x[::3, ::2], x[1::3, 1::2] = np.nan, np.nan
    plan = PassPlan("gradient_norm", passes=directions, seed=0, step=1e-3)
    files = save(tmp_path, model)
    found = pool.inspect(files, top_k=(1,), passes=(plan,), trial={"x": x})
    (scales,) = (plan.scales["x"] for plan in found.passes)
    np.testing.assert_allclose(scales, 1, atol=0.5)
    norms = pool.predict(files, found.resolved, {"x": x}).uncertainty["gradient_norm"]
    assert (norms > 0).all()


def test_a_row_without_an_answer_is_named(pool, tmp_path):
    nodes = [
        node("MatMul", ["x", "W"], ["z"]),
        node("Softmax", ["z"], ["p"], axis=1),
        node("ReduceMax", ["x"], ["largest"], axes=[1], keepdims=1),
        node("Less", ["largest", "limit"], ["is_usual"]),
        node("Where", ["is_usual", "p", "nothing"], ["y"]),
    ]
    model = make_model(
        nodes,
        inputs=[value("x", ("N", N_VALUES))],
        initializers=[constant("W", WEIGHTS), constant("nothing", 0), constant("limit", 10)],
    )
    x = sequences(20, 1)[:, 0]
    plan = PassPlan("gradient_norm", passes=16, seed=0, step=1e-3)
    files = save(tmp_path, model)
    found = pool.inspect(
        files, top_k=(1,), output={"kind": "probabilities"}, passes=(plan,), trial={"x": x}
    )
    x[3, 0] = 11
    with pytest.raises(InvalidInput, match="row 3 is not finite"):
        pool.predict(files, found.resolved, {"x": x})

"""Measures of several runs for models whose rows have unusual layouts, lengths or values."""

import numpy as np
import pytest
from graph_models import dropout, node
from runner_models import mean_of_vectors, of_rows, save
from scipy.special import softmax

from service.errors import InvalidInput, InvalidOnnxModel
from service.runner.messages.passes import PassPlan

N_VALUES, N_CLASSES = 4, 3
WEIGHTS = np.random.default_rng(0).normal(size=(N_VALUES, N_CLASSES)).astype(np.float32)


def of_values(*nodes, batch="N", **constants):
    """Return a model of rows of a few values, and the weights w."""
    return of_rows(*nodes, shape=(batch, N_VALUES), w=WEIGHTS, **constants)


def sequences_first(batch, length, *, merged=False):
    """Return a model that drops from its rows with time on the axis before them.

    ``merged`` makes one axis of time and rows for the dropout alone.
    """
    nodes = [node("Transpose", ["x"], ["turned"], perm=[1, 0, 2])]
    if merged:
        nodes += [
            node("Shape", ["turned"], ["shape"]),
            node("Reshape", ["turned", "flat"], ["one"]),
        ]
        nodes += dropout("one", "dropped", 0.5)
        nodes.append(node("Reshape", ["dropped", "shape"], ["apart"]))
    else:
        nodes += dropout("turned", "apart", 0.5)
    return of_rows(
        *nodes,
        node("Sin", ["apart"], ["waves"]),
        node("ReduceMean", ["waves"], ["mean"], axes=[0], keepdims=0),
        node("MatMul", ["mean", "w"], ["y"]),
        shape=(batch, length, N_VALUES),
        w=WEIGHTS,
        flat=[-1, N_VALUES],
    )


def drawing(batch, shape):
    return of_values(
        node("RandomNormal", [], ["noise"], shape=shape),
        node("Add", ["x", "noise"], ["moved"]),
        node("Sin", ["moved"], ["waves"]),
        node("MatMul", ["waves", "w"], ["y"]),
        batch=batch,
    )


def dropped_weights(batch):
    nodes = [*dropout("w", "kept", 0.5), node("MatMul", ["x", "kept"], ["y"])]
    return of_values(*nodes, batch=batch)


TIME_FIRST = (5, N_VALUES)
APART = [
    (sequences_first(8, 16), (16, N_VALUES), "dropout_variance"),
    (sequences_first("N", 5, merged=True), TIME_FIRST, "dropout_variance"),
    (sequences_first(8, 5, merged=True), TIME_FIRST, "dropout_variance"),
    (drawing(8, [8, N_VALUES]), (N_VALUES,), "ensemble_variance"),
]
ALIKE = [
    (sequences_first(8, 5), TIME_FIRST, "dropout_variance"),
    (sequences_first("N", 16), (16, N_VALUES), "dropout_variance"),
    (drawing(8, [1, N_VALUES]), (N_VALUES,), "ensemble_variance"),
    (dropped_weights(8), (N_VALUES,), "dropout_variance"),
]


def normal(*shape, seed=1):
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def inspect(pool, files, measure, x, **options):
    plan = PassPlan(measure, **{"passes": 6, "seed": 0} | options)
    return pool.inspect(files, top_k=(1,), passes=(plan,), trial={"x": x})


@pytest.mark.parametrize(("model", "shape", "measure"), APART)
def test_noise_that_rows_cannot_share_is_refused(pool, tmp_path, model, shape, measure):
    with pytest.raises(InvalidOnnxModel, match="one row"):
        inspect(pool, save(tmp_path, model), measure, normal(40, *shape))


@pytest.mark.parametrize(("model", "shape", "measure"), ALIKE)
def test_a_value_does_not_depend_on_the_place_in_the_batch(pool, tmp_path, model, shape, measure):
    x, files = normal(40, *shape), save(tmp_path, model)
    resolved = inspect(pool, files, measure, x).resolved
    whole = pool.predict(files, resolved, {"x": x}).uncertainty[measure]
    order = np.random.default_rng(2).permutation(len(x))
    moved = pool.predict(files, resolved, {"x": x[order]}).uncertainty[measure]
    np.testing.assert_allclose(moved, whole[order], atol=1e-6 * whole.max())


def test_weights_are_dropped_alike_in_batches_of_any_size(pool, tmp_path):
    x, found = normal(12, N_VALUES), []
    for batch in ("N", 2, 8):
        files = save(tmp_path, dropped_weights(batch), name=f"{batch}.onnx")
        resolved = inspect(pool, files, "dropout_variance", x, passes=20).resolved
        found.append(pool.predict(files, resolved, {"x": x}).uncertainty["dropout_variance"])
    np.testing.assert_allclose(found[1:], [found[0]] * 2, rtol=1e-4)


def exact_norms(x):
    """Return ``||d ||p||_2 / dx||_2`` of `mean_of_vectors` by hand."""
    p = softmax(x.astype(float).mean(axis=1) @ WEIGHTS, axis=1)
    norm = np.sqrt((p**2).sum(axis=1, keepdims=True))
    of_mean = (p * (p - norm**2) / norm) @ WEIGHTS.T
    return np.linalg.norm(of_mean, axis=1) / np.sqrt(x.shape[1])


@pytest.mark.parametrize(("planned", "asked"), [(20, 16), (16, 20), (16, 3)])
def test_gradients_of_text_of_another_length_than_the_trial_rows(pool, tmp_path, planned, asked):
    files = save(tmp_path, mean_of_vectors(WEIGHTS))
    trial = normal(20, planned, N_VALUES)
    found = inspect(pool, files, "gradient_norm", trial, passes=64, step=1e-3)
    x = normal(30, asked, N_VALUES, seed=2)
    norms = pool.predict(files, found.resolved, {"x": x}).uncertainty["gradient_norm"]
    ratio = norms / exact_norms(x)
    assert np.all((ratio > 0.6) & (ratio < 1.5))
    records = pool.record(files, found.resolved, {"x": x}, np.zeros(30, np.int64), seed=0)
    np.testing.assert_allclose(records.uncertainty["gradient_norm"], norms, rtol=1e-3)


@pytest.mark.parametrize("directions", [2, 16])
def test_missing_values_do_not_count_in_the_scale_of_a_step(pool, tmp_path, directions):
    model = of_values(
        node("IsNaN", ["x"], ["missing"]),
        node("Where", ["missing", "nothing", "x"], ["known"]),
        node("MatMul", ["known", "w"], ["y"]),
        nothing=0.0,
    )
    x = normal(50, N_VALUES)
    x[::3, ::2], x[1::3, 1::2] = np.nan, np.nan
    files = save(tmp_path, model)
    found = inspect(pool, files, "gradient_norm", x, passes=directions, step=1e-3)
    (plan,) = found.passes
    np.testing.assert_allclose(plan.scales["x"], 1, atol=0.5)
    norms = pool.predict(files, found.resolved, {"x": x}).uncertainty["gradient_norm"]
    assert (norms > 0).all()


def test_a_row_without_a_finite_score_is_named(pool, tmp_path):
    model = of_values(
        node("MatMul", ["x", "w"], ["z"]),
        node("Softmax", ["z"], ["p"], axis=1),
        node("ReduceMax", ["x"], ["largest"], axes=[1], keepdims=1),
        node("Less", ["largest", "limit"], ["is_usual"]),
        node("Where", ["is_usual", "p", "nothing"], ["y"]),
        nothing=0.0,
        limit=10.0,
    )
    x, files = normal(20, N_VALUES), save(tmp_path, model)
    plan = PassPlan("gradient_norm", passes=16, seed=0, step=1e-3)
    found = pool.inspect(
        files, top_k=(1,), output={"kind": "probabilities"}, passes=(plan,), trial={"x": x}
    )
    x[3, 0] = 11
    with pytest.raises(InvalidInput, match="row 3 is not finite"):
        pool.predict(files, found.resolved, {"x": x})

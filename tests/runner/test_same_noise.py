"""Noise of one row for all rows: kept where rows lie in a batch as they may, refused elsewhere."""

import numpy as np
import pytest
from graph_models import constant, make_model, node, value
from graph_noise import dropout
from runner_models import save

from service.errors import InvalidOnnxModel
from service.runner.messages.passes import PassPlan

N_VALUES, N_CLASSES = 4, 3
_rng = np.random.default_rng(3)
WEIGHTS = constant("W", _rng.normal(size=(N_VALUES, N_CLASSES)))
REFUSED = "noise is drawn for one row and used for all"


def sequences_first(batch, length, *, merged=False):
    """Return a model that drops from its rows with time on the axis before them."""
    nodes = [node("Transpose", ["x"], ["turned"], perm=[1, 0, 2])]
    given, seen = "turned", "dropped"
    if merged:
        nodes += [
            node("Shape", ["turned"], ["shape"]),
            node("Reshape", ["turned", "flat"], ["one"]),
        ]
        given, seen = "one", "apart"
    nodes += dropout(given, "dropped", 0.5)
    if merged:
        nodes.append(node("Reshape", ["dropped", "shape"], ["apart"]))
    nodes += [
        node("Sin", [seen], ["waves"]),
        node("ReduceMean", ["waves"], ["mean"], axes=[0], keepdims=0),
        node("MatMul", ["mean", "W"], ["y"]),
    ]
    return make_model(
        nodes,
        inputs=[value("x", (batch, length, N_VALUES))],
        initializers=[WEIGHTS, constant("flat", [-1, N_VALUES], np.int64)],
    )


def drawing(batch, shape):
    nodes = [
        node("RandomNormal", [], ["noise"], shape=shape),
        node("Add", ["x", "noise"], ["moved"]),
        node("Sin", ["moved"], ["waves"]),
        node("MatMul", ["waves", "W"], ["y"]),
    ]
    return make_model(nodes, inputs=[value("x", (batch, N_VALUES))], initializers=[WEIGHTS])


def dropped_weights(batch):
    nodes = [*dropout("W", "kept", 0.5), node("MatMul", ["x", "kept"], ["y"])]
    return make_model(nodes, inputs=[value("x", (batch, N_VALUES))], initializers=[WEIGHTS])


APART = {
    "time first, 16 steps in batches of 8": (
        lambda: sequences_first(8, 16),
        (16, N_VALUES),
        "dropout_variance",
    ),
    "time first and one axis with the rows": (
        lambda: sequences_first("N", 5, merged=True),
        (5, N_VALUES),
        "dropout_variance",
    ),
    "the same in batches of 8": (
        lambda: sequences_first(8, 5, merged=True),
        (5, N_VALUES),
        "dropout_variance",
    ),
    "noise of a batch's shape": (
        lambda: drawing(8, [8, N_VALUES]),
        (N_VALUES,),
        "ensemble_variance",
    ),
}
ALIKE = {
    "time first, 5 steps in batches of 8": (
        lambda: sequences_first(8, 5),
        (5, N_VALUES),
        "dropout_variance",
    ),
    "time first, any batch": (
        lambda: sequences_first("N", 16),
        (16, N_VALUES),
        "dropout_variance",
    ),
    "noise of one row": (lambda: drawing(8, [1, N_VALUES]), (N_VALUES,), "ensemble_variance"),
    "weights in batches of 8": (lambda: dropped_weights(8), (N_VALUES,), "dropout_variance"),
    "weights in batches of 2": (lambda: dropped_weights(2), (N_VALUES,), "dropout_variance"),
}


@pytest.mark.parametrize("name", APART)
def test_noise_that_rows_cannot_share_is_refused(pool, tmp_path, name):
    make, shape, measure = APART[name]
    x = np.random.default_rng(1).normal(size=(40, *shape)).astype(np.float32)
    with pytest.raises(InvalidOnnxModel, match=REFUSED):
        pool.inspect(
            save(tmp_path, make()),
            top_k=(1,),
            passes=(PassPlan(measure, passes=6, seed=0),),
            trial={"x": x},
        )


@pytest.mark.parametrize("name", ALIKE)
def test_the_place_of_a_row_in_its_batch_does_not_show(pool, tmp_path, name):
    make, shape, measure = ALIKE[name]
    x = np.random.default_rng(1).normal(size=(40, *shape)).astype(np.float32)
    files = save(tmp_path, make())
    plan = PassPlan(measure, passes=6, seed=0)
    resolved = pool.inspect(files, top_k=(1,), passes=(plan,), trial={"x": x}).resolved
    whole = pool.predict(files, resolved, {"x": x}).uncertainty[measure]
    order = np.random.default_rng(2).permutation(len(x))
    moved = pool.predict(files, resolved, {"x": x[order]}).uncertainty[measure]
    np.testing.assert_allclose(moved, whole[order], atol=1e-6 * whole.max())


def test_weights_are_dropped_alike_in_batches_of_any_size(pool, tmp_path):
    x = np.random.default_rng(1).normal(size=(12, N_VALUES)).astype(np.float32)
    plan = PassPlan("dropout_variance", passes=20, seed=0)
    found = []
    for batch in ("N", 2, 8):
        files = save(tmp_path, dropped_weights(batch), name=f"{batch}.onnx")
        resolved = pool.inspect(files, top_k=(1,), passes=(plan,), trial={"x": x}).resolved
        found.append(pool.predict(files, resolved, {"x": x}).uncertainty["dropout_variance"])
    for others in found[1:]:
        np.testing.assert_allclose(others, found[0], rtol=1e-4)

"""Outputs of the graph with one number a sample, through the child process and back."""

import json

import numpy as np
import pytest
from graph_models import constant, make_model, node, value
from runner_models import N_FEATURES, check_uncertainty, linear, rows, save, weights

from howsure.statistics.measures import column
from service.errors import InvalidConfig, InvalidDataset, InvalidInput, InvalidOnnxModel
from service.runner.messages.convert import FieldError
from service.runner.model_output import output_spec

TOP_K = (1, 5)
NAMES = ("own", "spread/of.it")
PLAIN, ESCAPED = (column(f"output:{name}", 1) for name in NAMES)
X = np.abs(rows(300))


def model_of(*, batch="N"):
    """Return a model of logits, the first feature's logarithm and the rows' spread."""
    model = linear(batch=batch)
    model.graph.node.extend(
        [
            node("Gather", ["x", "first"], ["column"], axis=1),
            node("Log", ["column"], [NAMES[0]]),
            node("ReduceL2", ["x"], [NAMES[1]], axes=[1], keepdims=0),
        ]
    )
    model.graph.initializer.append(constant("first", [0], np.int64))
    model.graph.output.extend([value(NAMES[0], (batch, 1)), value(NAMES[1], (batch,))])
    return model


def load(pool, files, *, names=NAMES, **options):
    return files, pool.inspect(
        files, top_k=TOP_K, trial={"x": X}, scalar_outputs=names, **options
    ).resolved


def check(uncertainty, x):
    np.testing.assert_allclose(uncertainty[PLAIN], np.log(x[:, 0]), rtol=1e-5, atol=1e-7)
    np.testing.assert_allclose(uncertainty[ESCAPED], np.linalg.norm(x, axis=1), rtol=1e-5)
    check_uncertainty(uncertainty, x.astype(float) @ weights(), TOP_K)


@pytest.mark.parametrize("batch", ["N", 8])
def test_they_come_back_in_answers_and_records(pool, tmp_path, batch):
    model = load(pool, save(tmp_path, model_of(batch=batch)))
    assert model[1]["output"]["name"] == "y"
    assert model[1]["scalar_outputs"] == list(NAMES)
    for x in (X, X[:1], X[:9]):
        check(pool.predict(*model, {"x": x}).uncertainty, x)
        labels = np.arange(len(x)) % 10
        check(pool.record(*model, {"x": x}, labels, seed=0).uncertainty, x)


def test_a_stored_resolution_brings_them_back_in_another_child(pool, tmp_path):
    files = save(tmp_path, model_of())
    stored = json.loads(json.dumps(load(pool, files)[1]))
    files = save(tmp_path, model_of(), name="moved.onnx")
    check(pool.predict(files, stored, {"x": X}).uncertainty, X)


def test_only_those_that_are_asked_for_are_passed_through(pool, tmp_path):
    model = load(pool, save(tmp_path, model_of()), names=NAMES[1:])
    x = X.copy()
    x[2, 0] = -1  # the other one would be NaN, and nobody asked for it
    uncertainty = pool.predict(*model, {"x": x}).uncertainty
    assert PLAIN not in uncertainty
    np.testing.assert_allclose(uncertainty[ESCAPED], np.linalg.norm(x, axis=1), rtol=1e-5)


def test_what_was_resolved_before_there_were_any_still_serves(pool, tmp_path):
    files, resolved = load(pool, save(tmp_path, model_of()), names=())
    del resolved["scalar_outputs"]
    uncertainty = pool.predict(files, resolved, {"x": X}).uncertainty
    assert {PLAIN, ESCAPED}.isdisjoint(uncertainty)
    check_uncertainty(uncertainty, X.astype(float) @ weights(), TOP_K)


def test_a_row_where_one_is_not_finite_is_named(pool, tmp_path):
    model = load(pool, save(tmp_path, model_of()))
    for bad in (0.0, -1.0):  # minus infinity, and NaN
        x = X.copy()
        x[37, 0] = bad
        with pytest.raises(InvalidInput) as caught:
            pool.predict(*model, {"x": x}, start=1000)
        assert caught.value.violations[0].location == "inputs[1037]"
        with pytest.raises(InvalidDataset) as caught:
            pool.record(*model, {"x": x}, np.zeros(300, dtype=int), seed=0)
        assert caught.value.violations[0].location == "calibration[37]"


@pytest.mark.parametrize("name", ["y", "absent"])
def test_what_is_no_scalar_is_refused(pool, tmp_path, name):
    with pytest.raises(InvalidConfig) as caught:
        load(pool, save(tmp_path, model_of()), names=[name])
    assert caught.value.violations[0].location == "config.measures"


def test_one_that_is_drawn_at_random_is_refused(pool, tmp_path):
    model = make_model(
        [
            node("MatMul", ["x", "w"], ["y"]),
            node("RandomNormalLike", ["y"], ["noise"]),
            node("ReduceMax", ["noise"], ["own"], axes=[1]),
        ],
        inputs=[value("x", ("N", N_FEATURES))],
        outputs=[value("y", ("N", 10)), value("own", ("N", 1))],
        initializers=[constant("w", weights())],
    )
    with pytest.raises(InvalidOnnxModel, match="other uncertainties when it was run a second"):
        load(pool, save(tmp_path, model), names=["own"])


def test_a_stored_resolution_that_was_damaged_is_refused(pool, tmp_path):
    resolved = load(pool, save(tmp_path, model_of()))[1]
    for damaged in ("own", [1], None):
        with pytest.raises(FieldError):
            output_spec(resolved | {"scalar_outputs": damaged})

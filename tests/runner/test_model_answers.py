"""Answers and records of models, through the child process and back, against numpy."""

import json

import numpy as np
import pytest
from graph_models import constant, node, steps, value
from runner_models import (
    check_head,
    check_uncertainty,
    linear,
    rows,
    save,
    softmax_of_two,
    undefined_below_zero,
    weights,
)
from scipy.special import log_softmax

from howsure.statistics.measures import column
from howsure.statistics.records.order import tie_keys
from service.errors import InvalidDataset, InvalidInput, InvalidOnnxModel, ModelRule

TOP_K = (1, 5)


def load(pool, files, trial, **options):
    return files, pool.inspect(files, top_k=TOP_K, trial=trial, **options).resolved


def logits_of(x, matrix=None):
    return x.astype(float) @ (weights() if matrix is None else matrix)


def test_answers_and_records_are_those_of_numpy(pool, tmp_path):
    x, labels = rows(700), np.random.default_rng(3).integers(0, 10, 700)
    logits = logits_of(x)
    model = load(pool, save(tmp_path, linear()), {"x": x})
    check_head(pool.predict(*model, {"x": x}), logits, TOP_K)
    records = pool.record(*model, {"x": x}, labels, seed=7)
    check_uncertainty(records.uncertainty, logits, TOP_K)
    np.testing.assert_array_equal(records.label, labels)
    ranks = (logits > np.take_along_axis(logits, labels[:, None], axis=1)).sum(axis=1)
    np.testing.assert_array_equal(records.label_rank, ranks)
    expected = log_softmax(logits, axis=1)[np.arange(700), labels]
    np.testing.assert_allclose(records.label_log_probability, expected, rtol=1e-4)
    np.testing.assert_array_equal(records.tie_key, tie_keys(x, 7))
    # Records do not depend on how the rows are divided.
    whole = records.to_arrays()
    for step in (256, 100, 7):
        parts = [
            pool.record(*model, {"x": x[i : i + step]}, labels[i : i + step], seed=7, start=i)
            for i in range(0, 700, step)
        ]
        for name, array in whole.items():
            joined = np.concatenate([part.to_arrays()[name] for part in parts])
            np.testing.assert_array_equal(joined, array, err_msg=f"{name} by {step}")


def test_several_inputs_come_by_name(pool, tmp_path):
    left, right = rows(60), rows(60, seed=5)
    feeds, turned = {"right": right, "left": left}, {"left": left, "right": right}
    model = load(pool, save(tmp_path, softmax_of_two(weights())), feeds)
    check_head(pool.predict(*model, feeds), logits_of(left + right), TOP_K)
    labels = np.zeros(60, dtype=np.int64)
    keys, again = (pool.record(*model, x, labels, seed=0).tie_key for x in (feeds, turned))
    np.testing.assert_array_equal(keys, again)
    assert len(np.unique(keys)) == 60


def check_named(pool, model, x, bad):
    """Check that the only bad row is named, in predictions and in records."""
    with pytest.raises(InvalidInput) as refused:
        pool.predict(*model, {"x": x}, start=1000)
    assert refused.value.violations[0].location == f"inputs[{1000 + bad}]"
    assert type(refused.value) is InvalidInput
    with pytest.raises(InvalidDataset) as refused:
        pool.record(*model, {"x": x}, np.zeros(len(x), dtype=int), seed=0, start=1000)
    assert refused.value.violations[0].location == f"calibration[{1000 + bad}]"


def test_a_row_without_a_finite_output_is_named(pool, tmp_path):
    x = np.abs(rows(300))
    model = load(pool, save(tmp_path, undefined_below_zero(weights())), {"x": x})
    for bad in (0, 299):
        wrong = x.copy()
        wrong[bad, 0] = -1
        check_named(pool, model, wrong, bad)


def test_rows_that_an_operator_refuses_are_the_caller_s_error(pool, tmp_path):
    # Its declared width is free, so that only the MatMul itself can tell.
    model = linear()
    model.graph.input[0].type.tensor_type.shape.dim[1].ClearField("dim_value")
    loaded = load(pool, save(tmp_path, model), {"x": rows(4)})
    with pytest.raises(InvalidInput, match="MatMul") as refused:
        pool.predict(*loaded, {"x": np.zeros((4, 9), dtype=np.float32)}, start=20)
    assert refused.value.violations[0].location == "inputs[20:24]"
    check_head(pool.predict(*loaded, {"x": rows(4)}), logits_of(rows(4)), TOP_K)


# Outputs of the graph with one number a sample, which are measures.
NAMES = ("own", "spread/of.it")
OWN, SPREAD = (column(f"output:{name}", 1) for name in NAMES)
X = np.abs(rows(300))


def with_outputs(folder, *, batch="N"):
    """Save a model of logits, the first feature's logarithm and the rows' spread."""
    own, spread = NAMES
    model = linear(batch=batch)
    model.graph.node.extend(steps(f"column = Gather<axis = 1>(x, first); {own} = Log(column)"))
    model.graph.node.append(node("ReduceL2", ["x"], [spread], axes=[1], keepdims=0))
    model.graph.initializer.append(constant("first", [0], np.int64))
    model.graph.output.extend([value(own, (batch, 1)), value(spread, (batch,))])
    return save(folder, model)


@pytest.mark.parametrize("batch", ["N", 8, 299])
def test_outputs_that_are_measures_come_back_in_answers_and_records(pool, tmp_path, batch):
    """Also from a model of a fixed batch, however many rows there are."""
    files = with_outputs(tmp_path, batch=batch)
    _, resolved = load(pool, files, {"x": X}, scalar_outputs=NAMES)
    assert resolved["output"]["name"] == "y"
    assert resolved["scalar_outputs"] == list(NAMES)
    stored = json.loads(json.dumps(resolved))
    for x in (X, X[:1], X[:9]):
        answers = pool.predict(files, stored, {"x": x})
        check_head(answers, logits_of(x), TOP_K)
        records = pool.record(files, stored, {"x": x}, np.arange(len(x)) % 10, seed=0)
        for columns in (answers.uncertainty, records.uncertainty):
            check_uncertainty(columns, logits_of(x), TOP_K)
            np.testing.assert_allclose(columns[OWN], np.log(x[:, 0]), rtol=1e-5, atol=1e-7)
            np.testing.assert_allclose(columns[SPREAD], np.linalg.norm(x, axis=1), rtol=1e-5)


def test_only_requested_outputs_are_computed_and_rows_not_finite_are_named(pool, tmp_path):
    files = with_outputs(tmp_path)
    chosen = (NAMES, NAMES[1:], ())
    both, one, none = (load(pool, files, {"x": X}, scalar_outputs=names)[1] for names in chosen)
    del none["scalar_outputs"]  # as in descriptions of earlier releases
    for bad in (0.0, -1.0):  # minus infinity, and NaN
        x = X.copy()
        x[37, 0] = bad
        check_named(pool, (files, both), x, 37)
    for resolved, columns in [(one, {SPREAD}), (none, set())]:
        uncertainty = pool.predict(files, resolved, {"x": x}).uncertainty
        assert {OWN, SPREAD} & uncertainty.keys() == columns


def test_a_measure_that_is_drawn_at_random_is_refused(pool, tmp_path):
    model = linear()
    model.graph.node.extend(steps("z = RandomNormalLike(y); own = ReduceMax<axes = [1]>(z)"))
    model.graph.output.append(value("own", ("N", 1)))
    with pytest.raises(InvalidOnnxModel) as refused:
        load(pool, save(tmp_path, model), {"x": X}, scalar_outputs=["own"])
    assert refused.value.violations[0].rule is ModelRule.ANSWERS_DIFFER

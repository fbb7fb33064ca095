import numpy as np
import pytest
from onnx import TensorProto
from runner_models import (
    N_FEATURES,
    check_head,
    check_uncertainty,
    from_integers,
    linear,
    rows,
    save,
    softmax_of_two,
    undefined_below_zero,
    weights,
    with_external_weights,
)
from scipy.special import log_softmax

from howsure.statistics.records.order import tie_keys
from service.errors import InvalidDataset, InvalidInput

TOP_K = (1, 5)


def load(pool, files, trial):
    return files, pool.inspect(files, top_k=TOP_K, trial=trial).resolved


def test_answers_are_those_of_numpy(pool, tmp_path):
    x = rows(700)
    model = load(pool, save(tmp_path, linear()), {"x": x})
    outputs = pool.predict(*model, {"x": x})
    assert outputs.top_classes.shape == (700, 5)
    check_head(outputs, x.astype(float) @ weights(), TOP_K)


def test_records_are_those_of_numpy(pool, tmp_path):
    x = rows(300)
    labels = np.random.default_rng(3).integers(0, 10, 300)
    logits = x.astype(float) @ weights()
    records = pool.record(*load(pool, save(tmp_path, linear()), {"x": x}), {"x": x}, labels, seed=7)
    check_uncertainty(records.uncertainty, logits, TOP_K)
    np.testing.assert_array_equal(records.label, labels)
    ranks = (logits > np.take_along_axis(logits, labels[:, None], axis=1)).sum(axis=1)
    np.testing.assert_array_equal(records.label_rank, ranks)
    expected = log_softmax(logits, axis=1)[np.arange(300), labels]
    np.testing.assert_allclose(records.label_log_probability, expected, rtol=1e-4)
    np.testing.assert_array_equal(records.tie_key, tie_keys(x, 7))


def test_records_do_not_depend_on_how_the_rows_are_divided(pool, tmp_path):
    x, labels = rows(600), np.arange(600) % 10
    model = load(pool, save(tmp_path, linear()), {"x": x})
    whole = pool.record(*model, {"x": x}, labels, seed=0).to_arrays()
    for step in (600, 256, 100, 7):
        parts = [
            pool.record(*model, {"x": x[i : i + step]}, labels[i : i + step], seed=0, start=i)
            for i in range(0, 600, step)
        ]
        for name, array in whole.items():
            joined = np.concatenate([part.to_arrays()[name] for part in parts])
            np.testing.assert_array_equal(joined, array, err_msg=f"{name} by {step}")


def test_a_row_alone_is_answered_as_among_others(pool, tmp_path):
    x = rows(256)
    model = load(pool, save(tmp_path, linear()), {"x": x})
    together = pool.predict(*model, {"x": x})
    for row in range(0, 256, 5):
        alone = pool.predict(*model, {"x": x[row : row + 1]})
        np.testing.assert_array_equal(alone.top_classes[0], together.top_classes[row])
        for name, values in alone.uncertainty.items():
            np.testing.assert_allclose(values[0], together.uncertainty[name][row], rtol=1e-6)


@pytest.mark.parametrize("n_rows", [1, 7, 8, 9, 300])
def test_a_model_of_fixed_batch_answers_any_number_of_rows(pool, tmp_path, n_rows):
    x = rows(n_rows)
    files = save(tmp_path, linear(batch=8))
    loaded = pool.inspect(files, top_k=TOP_K, trial={"x": x})
    assert loaded.description.fixed_batch == 8
    outputs = pool.predict(files, loaded.resolved, {"x": x})
    assert len(outputs.top_classes) == n_rows
    check_head(outputs, x.astype(float) @ weights(), TOP_K)
    labels = np.zeros(n_rows, dtype=np.int64)
    records = pool.record(files, loaded.resolved, {"x": x}, labels, seed=0)
    check_uncertainty(records.uncertainty, x.astype(float) @ weights(), TOP_K)


def test_a_fixed_batch_above_a_chunk(pool, tmp_path):
    x = rows(310)
    model = load(pool, save(tmp_path, linear(batch=300)), {"x": x[:3]})
    check_head(pool.predict(*model, {"x": x}), x.astype(float) @ weights(), TOP_K)


def test_bytes_feed_integers_and_floats_alike(pool, tmp_path):
    pixels = np.random.default_rng(0).integers(0, 256, (40, N_FEATURES), dtype=np.uint8)
    matrix = weights() / 255
    for name, model in [("i.onnx", from_integers(matrix)), ("f.onnx", linear(matrix))]:
        files, resolved = load(pool, save(tmp_path, model, name=name), {"x": pixels})
        for dtype in (np.uint8, np.int64, np.float64):
            outputs = pool.predict(files, resolved, {"x": pixels.astype(dtype)})
            check_head(outputs, pixels.astype(float) @ matrix, TOP_K)


@pytest.mark.parametrize(
    ("element_type", "dtype"),
    [(TensorProto.FLOAT16, np.float16), (TensorProto.DOUBLE, np.float64)],
)
def test_half_and_double_precision(pool, tmp_path, element_type, dtype):
    # Small integers and quarters: exact in half precision, so that numpy's logits are the model's.
    matrix = np.random.default_rng(0).integers(-8, 8, (N_FEATURES, 10)) / 4
    x = np.random.default_rng(1).integers(-4, 5, (50, N_FEATURES)) / 4
    matrix[0] += np.arange(10) / 64  # no ties
    x[:, 0] = 1
    model = linear(matrix, element_type=element_type, dtype=dtype)
    files, resolved = load(pool, save(tmp_path, model), {"x": x})
    outputs = pool.predict(files, resolved, {"x": x})
    logits = x @ matrix.astype(dtype).astype(float)
    check_uncertainty(outputs.uncertainty, logits.astype(dtype), TOP_K)


def test_several_inputs_come_by_name(pool, tmp_path):
    left, right = rows(60), rows(60, seed=5)
    files = save(tmp_path, softmax_of_two(weights()))
    model = load(pool, files, {"right": right, "left": left})
    logits = (left + right).astype(float) @ weights()
    check_head(pool.predict(*model, {"right": right, "left": left}), logits, TOP_K)
    labels = np.zeros(60, dtype=np.int64)
    records = pool.record(*model, {"right": right, "left": left}, labels, seed=0)
    again = pool.record(*model, {"left": left, "right": right}, labels, seed=0)
    np.testing.assert_array_equal(records.tie_key, again.tie_key)
    assert len(np.unique(records.tie_key)) == 60


def test_external_weights_give_the_same_answers(pool, tmp_path):
    x, matrix = rows(30), weights(300)
    (tmp_path / "apart").mkdir()
    whole = load(pool, save(tmp_path, linear(matrix)), {"x": x})
    apart = load(pool, with_external_weights(tmp_path / "apart", matrix), {"x": x})
    ours, theirs = pool.predict(*whole, {"x": x}), pool.predict(*apart, {"x": x})
    np.testing.assert_array_equal(ours.top_scores, theirs.top_scores)
    check_head(theirs, x.astype(float) @ matrix, TOP_K)


@pytest.mark.parametrize("bad", [0, 37, 299])
def test_a_row_without_a_finite_output_is_named(pool, tmp_path, bad):
    x = np.abs(rows(300))
    model = load(pool, save(tmp_path, undefined_below_zero(weights())), {"x": x})
    pool.predict(*model, {"x": x})
    x[bad, 0] = -1
    with pytest.raises(InvalidInput) as caught:
        pool.predict(*model, {"x": x}, start=1000)
    assert caught.value.violations[0].location == f"inputs[{1000 + bad}]"
    assert type(caught.value) is InvalidInput
    with pytest.raises(InvalidDataset) as caught:
        pool.record(*model, {"x": x}, np.zeros(300, dtype=int), seed=0, start=1000)
    assert caught.value.violations[0].location == f"calibration[{1000 + bad}]"


def test_an_infinite_logit_is_refused(pool, tmp_path):
    x = rows(5)
    model = load(pool, save(tmp_path, linear()), {"x": x})
    x[3] = np.inf
    with pytest.raises(InvalidInput, match="row 3"):
        pool.predict(*model, {"x": x})


@pytest.mark.parametrize(
    ("labels", "location"),
    [
        (np.array([0, 1, 10]), "calibration.labels[102]"),
        (np.array([0, -1, 2]), "calibration.labels[101]"),
        (np.array([0, 1]), "calibration.labels"),
        (np.array([0.0, 1.0, 2.0]), "calibration.labels"),
        (np.array([[0], [1], [2]]), "calibration.labels"),
    ],
)
def test_labels_that_break_a_rule_are_named(pool, tmp_path, labels, location):
    x = rows(3)
    model = load(pool, save(tmp_path, linear()), {"x": x})
    with pytest.raises(InvalidDataset) as caught:
        pool.record(*model, {"x": x}, labels, seed=0, start=100)
    assert caught.value.violations[0].location == location


def test_rows_the_graph_chokes_on_are_the_caller_s_error(pool, tmp_path):
    # Its declared width is free, so that only the MatMul itself can tell.
    model = linear()
    model.graph.input[0].type.tensor_type.shape.dim[1].ClearField("dim_value")
    loaded = load(pool, save(tmp_path, model), {"x": rows(4)})
    with pytest.raises(InvalidInput, match="MatMul") as caught:
        pool.predict(*loaded, {"x": np.zeros((4, 9), dtype=np.float32)}, start=20)
    assert caught.value.violations[0].location == "inputs[20:24]"
    check_head(pool.predict(*loaded, {"x": rows(4)}), rows(4).astype(float) @ weights(), TOP_K)

"""The uncertainty head on a GPU against float64 numpy."""

import numpy as np
import pytest
from graph_models import passthrough, reference
from onnx import TensorProto
from runner_models import head_on
from scipy.special import logsumexp

from howsure.statistics.measures import columns

pytestmark = [pytest.mark.gpu, pytest.mark.slow]

SCALES = (1e-20, 1e-3, 1, 10, 50, 1e3, 1e6, 1e30)
DTYPES = {
    TensorProto.FLOAT16: np.float16,
    TensorProto.FLOAT: np.float32,
    TensorProto.DOUBLE: np.float64,
}
NOT_FINITE = (
    [np.nan, 1, 2, 3, 4, 5],
    [5, 4, 3, 2, 1, np.nan],
    [np.nan] * 6,
    [np.inf, 1, 2, 3, 4, 5],
    [np.inf, np.inf, 2, 3, 4, 5],
    [-np.inf] * 6,
)


def expected_measures(logits, top_k):
    """Return every registered measure of logits."""
    top_k = [k for k in top_k if k < logits.shape[1]]
    measures = reference(logits, top_k)[2]
    measures["energy"] = -logsumexp(logits.astype(np.float64), axis=1)
    assert set(measures) == {name for name, _, _ in columns(top_k, logits=True)}
    return measures


def assert_measures_agree(head, measures):
    for column, expected in measures.items():
        got = head[column]
        assert (got.dtype, got.shape) == (np.float32, expected.shape)
        if column == "energy":
            expected_norm = np.maximum(np.abs(expected), 1)
            assert (np.abs(got - expected) <= 1e-5 * expected_norm).all()
            continue
        assert np.isfinite(got).all(), column
        assert not np.signbit(got).any(), column
        resolved = expected >= 1e-12
        np.testing.assert_allclose(got[resolved], expected[resolved], rtol=1e-4, err_msg=column)
        assert (expected[got == 0] < 1e-37).all(), column


@pytest.mark.parametrize("opset", [11, 13, 18, 23])
@pytest.mark.parametrize("n_classes", [2, 5, 6, 10, 1000, 20_000])
def test_measures_equal_float64_from_tiny_logits_to_huge_ones(device, n_classes, opset):
    rng = np.random.default_rng(n_classes)
    logits = np.concatenate([scale * rng.normal(size=(8, n_classes)) for scale in SCALES])
    logits = logits.astype(np.float32)
    head = head_on(device, passthrough(opset=opset), {"x": logits}, kind="logits")
    assert_measures_agree(head, expected_measures(logits, (1, 5)))
    order, probabilities, _ = reference(logits)
    n_top = min(5, n_classes)
    np.testing.assert_array_equal(head["top_classes"], order[:, :n_top])
    np.testing.assert_allclose(head["top_scores"], probabilities[:, :n_top], rtol=1e-4, atol=1e-37)
    np.testing.assert_array_equal(head["scores"], logits)


@pytest.mark.parametrize("element_type", list(DTYPES))
@pytest.mark.parametrize("top_k", [(1, 5), (1,), (3, 1), (1, 5, 8), (2, 9)])
def test_every_float_type_and_event_is_computed_in_enough_digits(device, element_type, top_k):
    logits = (8 * np.random.default_rng(1).normal(size=(300, 10))).astype(DTYPES[element_type])
    head = head_on(device, passthrough(element_type=element_type), {"x": logits}, top_k=top_k)
    assert_measures_agree(head, expected_measures(logits, top_k))


@pytest.mark.parametrize("element_type", [TensorProto.FLOAT, TensorProto.DOUBLE])
@pytest.mark.parametrize("n_classes", [3, 10, 257, 1000, 20_000])
@pytest.mark.parametrize("n_rows", [1, 200])
def test_ties_go_to_the_lower_class(device, n_classes, n_rows, element_type):
    """As on the CPU; a device has several ways to find the largest, by the number of classes."""
    rng = np.random.default_rng(5)
    logits = rng.integers(-2, 2, size=(n_rows, n_classes)).astype(DTYPES[element_type])
    logits[: n_rows // 10 + 1] = 0
    logits[n_rows // 2 :, 2:] = -np.inf
    expected = np.argsort(-logits, axis=1, kind="stable")
    model = passthrough(element_type=element_type)
    for top_k in ((1,), (1, 5), (1, 50)):
        head = head_on(device, model, {"x": logits}, kind="logits", top_k=top_k)
        classes = head["top_classes"]
        np.testing.assert_array_equal(classes, expected[:, : classes.shape[1]])


def test_probabilities(device):
    rows = np.random.default_rng(7).dirichlet(np.full(10, 0.2), size=200).astype(np.float32)
    head = head_on(device, passthrough(), {"x": rows}, kind="probabilities")
    with np.errstate(divide="ignore"):
        order, _, measures = reference(np.log(rows.astype(np.float64)))
    assert_measures_agree(head, measures)
    distinct = np.diff(np.sort(rows, axis=1), axis=1).all(axis=1)
    np.testing.assert_array_equal(head["top_classes"][distinct], order[distinct, :5])


@pytest.mark.parametrize("row", NOT_FINITE)
@pytest.mark.parametrize("element_type", [TensorProto.FLOAT, TensorProto.DOUBLE])
def test_rows_that_are_not_finite_say_so_in_every_measure(device, row, element_type):
    logits = np.array([[0, 1, 2, 3, 4, 5], row], dtype=DTYPES[element_type])
    model = passthrough(element_type=element_type)
    head = head_on(device, model, {"x": logits}, kind="logits", trial={"x": logits[:1]})
    for column, _, _ in columns((1, 5), logits=True):
        assert np.isfinite(head[column][0]), column
        assert np.isnan(head[column][1]), column
    assert np.isnan(head["top_scores"][1]).all()


def test_ruled_out_classes_count_for_nothing(device):
    logits = (3 * np.random.default_rng(6).normal(size=(30, 10))).astype(np.float32)
    logits[:, 4] = -np.inf
    head = head_on(device, passthrough(), {"x": logits}, kind="logits")
    assert_measures_agree(head, expected_measures(np.delete(logits, 4, axis=1), (1, 5)))

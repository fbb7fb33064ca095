import numpy as np
import pytest

from howsure.statistics.arrays import as_hits, as_labels, as_scores, as_uncertainty


def test_scores_become_float64_and_may_rule_a_class_out():
    scores = as_scores(np.array([[1, 2], [3, 4]], dtype=np.float16))
    assert scores.dtype == np.float64
    assert as_scores([[0.0, -np.inf]]).tolist() == [[0.0, -np.inf]]


@pytest.mark.parametrize(
    ("values", "rule"),
    [
        ([1.0, 2.0], r"shape \(n_samples, n_classes >= 2\), not \(2,\)"),
        ([[1.0]], r"not \(1, 1\)"),
        ([[1.0, 2.0], [np.nan, 0.0]], "row 1 is not"),
        ([[np.inf, 0.0]], "row 0 is not"),
        ([[-np.inf, -np.inf]], "row 0 is not"),
    ],
)
def test_scores_without_a_softmax_are_refused(values, rule):
    with pytest.raises(ValueError, match=rule):
        as_scores(values)


def test_labels_become_int64():
    labels = as_labels(np.array([0, 2], dtype=np.uint8), n_samples=2, n_classes=3)
    assert labels.dtype == np.int64


@pytest.mark.parametrize(
    ("values", "rule"),
    [
        ([0, 3], r"\[0, 3\): row 1 holds 3"),
        ([-1, 0], "row 0 holds -1"),
        ([0.0, 1.0], "must be integers, not float64"),
        ([0], r"shape \(2,\), not \(1,\)"),
    ],
)
def test_labels_that_name_no_class_are_refused(values, rule):
    with pytest.raises(ValueError, match=rule):
        as_labels(np.array(values), n_samples=2, n_classes=3)


@pytest.mark.parametrize(
    ("values", "rule"),
    [
        ([[1.0]], r"shape \(n_samples,\)"),
        ([0.0, np.nan], "row 1 holds nan"),
        ([-np.inf], "row 0 holds -inf"),
        ([1e39], "row 0 holds inf"),
    ],
)
def test_uncertainties_without_a_bin_are_refused(values, rule):
    with pytest.raises(ValueError, match=rule):
        as_uncertainty(values)


def test_hits_may_be_zeros_and_ones():
    assert as_hits([1, 0], n_samples=2).tolist() == [True, False]


@pytest.mark.parametrize(("values", "rule"), [([2, 0], "booleans"), ([True], r"shape \(2,\)")])
def test_hits_that_are_neither_are_refused(values, rule):
    with pytest.raises(ValueError, match=rule):
        as_hits(values, n_samples=2)

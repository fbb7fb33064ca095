import numpy as np
import pytest

from howsure.statistics.arrays import as_hits, as_labels, as_scores, as_uncertainty


def labels_of_two(values):
    return as_labels(np.array(values), n_samples=2, n_classes=3)


def hits_of_two(values):
    return as_hits(values, n_samples=2)


@pytest.mark.parametrize(
    ("check", "values", "rule"),
    [
        (as_scores, [1.0, 2.0], r"shape \(n_samples, n_classes >= 2\), not \(2,\)"),
        (as_scores, [[1.0]], r"not \(1, 1\)"),
        (as_scores, [[1.0, 2.0], [np.nan, 0.0]], "row 1 is not"),
        (as_scores, [[np.inf, 0.0]], "row 0 is not"),
        (as_scores, [[-np.inf, -np.inf]], "row 0 is not"),
        (labels_of_two, [0, 3], r"\[0, 3\): row 1 holds 3"),
        (labels_of_two, [-1, 0], "row 0 holds -1"),
        (labels_of_two, [0.0, 1.0], "must be integers, not float64"),
        (labels_of_two, [0], r"shape \(2,\), not \(1,\)"),
        (as_uncertainty, [[1.0]], r"shape \(n_samples,\)"),
        (as_uncertainty, [0.0, np.nan], "row 1 holds nan"),
        (as_uncertainty, [-np.inf], "row 0 holds -inf"),
        (as_uncertainty, [1e39], "row 0 holds inf"),  # in float32
        (hits_of_two, [2, 0], "booleans"),
        (hits_of_two, [True], r"shape \(2,\)"),
    ],
)
def test_invalid_arrays_are_refused(check, values, rule):
    with pytest.raises(ValueError, match=rule):
        check(values)


def test_other_types_are_converted():
    assert as_scores(np.float16([[0, -np.inf]])).dtype == np.float64
    assert labels_of_two(np.uint8([0, 2])).dtype == np.int64
    assert hits_of_two([1, 0]).tolist() == [True, False]

"""Logits and probabilities are told apart by their values."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst
from scipy.special import expit, log_softmax, softmax

from service.errors import InvalidOnnxModel
from service.graph.output.kinds import finite_rows, kind_of_values

LOGITS = 3 * np.random.default_rng(0).normal(size=(20, 6))
blocks = npst.arrays(
    np.float64,
    st.tuples(st.integers(1, 8), st.integers(2, 9)),
    elements=st.floats(-30, 30, width=32),
)


@given(blocks)
def test_kinds_of_any_block(logits):
    assert kind_of_values(softmax(logits, axis=1)) == "probabilities"
    assert kind_of_values(log_softmax(logits, axis=1)) == "log-probabilities"
    if logits.min() < -1e-2 and logits.max() > 1e-2:
        assert kind_of_values(logits) == "logits"


VALUES = [
    (softmax(LOGITS, axis=1).astype(np.float16), "probabilities"),
    (softmax(LOGITS, axis=1).astype(np.float32), "probabilities"),
    (np.eye(4), "probabilities"),
    (np.insert(LOGITS, 2, -np.inf, axis=1), "logits"),
    (np.insert(log_softmax(LOGITS, axis=1), 2, -np.inf, axis=1), "log-probabilities"),
    (np.zeros((3, 4)), "logits"),
    (np.full((3, 4), 0.25), "probabilities"),
    # One column is a probability within the unit interval.
    (np.array([[0.0], [0.4], [1.0]]), "probabilities"),
    (np.array([[0.2], [1.4]]), "logits"),
    (np.array([[-0.1], [0.5]]), "logits"),
]


@pytest.mark.parametrize(("values", "kind"), VALUES)
def test_kinds_are_told_by_value(values, kind):
    assert kind_of_values(values) == kind


REFUSED = [
    *((expit(LOGITS[:, :columns]), r"sigmoid.*output\.kind") for columns in (2, 6)),
    *((np.full((3, 4), filler), "not finite") for filler in (np.nan, np.inf, -np.inf)),
]


@pytest.mark.parametrize(("values", "message"), REFUSED)
def test_independent_sigmoids_and_nothing_finite_are_refused(values, message):
    with pytest.raises(InvalidOnnxModel, match=message) as caught:
        kind_of_values(values)
    assert caught.value.violations[0].location == "model"


def test_rows_that_are_not_finite_are_left_out():
    rows = np.vstack([LOGITS, LOGITS])
    rows[:4] = [[np.nan] * 6, [np.inf] * 6, [-np.inf] * 6, [0, 1, np.nan, 3, 4, 5]]
    assert len(finite_rows(rows)) == len(rows) - 4
    assert kind_of_values(rows) == "logits"

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst
from scipy.special import log_softmax, softmax

from service.errors import InvalidOnnxModel
from service.graph.output.choose import finite_rows, kind_of_values

LOGITS = 3 * np.random.default_rng(0).normal(size=(20, 6))

blocks = npst.arrays(
    np.float64,
    st.tuples(st.integers(1, 8), st.integers(2, 9)),
    elements=st.floats(-30, 30, width=32),
)


@given(blocks)
def test_a_softmax_is_probabilities_and_its_logarithm_log_probabilities(logits):
    assert kind_of_values(softmax(logits, axis=1)) == "probabilities"
    assert kind_of_values(log_softmax(logits, axis=1)) == "log-probabilities"


@given(blocks.filter(lambda block: block.min() < -1e-2 and block.max() > 1e-2))
def test_values_of_both_signs_are_logits(logits):
    assert kind_of_values(logits) == "logits"


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_rounded_probabilities_are_probabilities(dtype):
    assert kind_of_values(softmax(LOGITS, axis=1).astype(dtype)) == "probabilities"


def test_one_hot_rows_are_probabilities():
    assert kind_of_values(np.eye(4)) == "probabilities"


def test_ruled_out_classes_do_not_hide_logits():
    logits = LOGITS.copy()
    logits[:, 2] = -np.inf
    assert kind_of_values(logits) == "logits"
    with np.errstate(divide="ignore"):
        assert kind_of_values(np.log(softmax(logits, axis=1))) == "log-probabilities"


@pytest.mark.parametrize("columns", [2, 6])
def test_independent_sigmoids_are_refused_with_advice(columns):
    sigmoids = 1 / (1 + np.exp(-LOGITS[:, :columns]))
    with pytest.raises(InvalidOnnxModel, match=r"sigmoid.*output\.kind") as caught:
        kind_of_values(sigmoids)
    assert caught.value.violations[0].location == "model"


@pytest.mark.parametrize(
    ("column", "kind"),
    [([0.0, 0.4, 1.0], "probabilities"), ([0.2, 1.4], "logits"), ([-0.1, 0.5], "logits")],
)
def test_one_column_is_a_probability_within_the_unit_interval(column, kind):
    assert kind_of_values(np.array(column)[:, None]) == kind


def test_rows_that_are_not_finite_are_left_out():
    rows = np.vstack([LOGITS, LOGITS])
    rows[:4] = [[np.nan] * 6, [np.inf] * 6, [-np.inf] * 6, [0, 1, np.nan, 3, 4, 5]]
    assert len(finite_rows(rows)) == len(rows) - 4
    assert kind_of_values(rows) == "logits"


@pytest.mark.parametrize("filler", [np.nan, np.inf, -np.inf])
def test_nothing_finite_is_refused(filler):
    with pytest.raises(InvalidOnnxModel, match="not finite"):
        kind_of_values(np.full((3, 4), filler))

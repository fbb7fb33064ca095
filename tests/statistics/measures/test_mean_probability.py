"""The mean probability of passes, in log space against the naive mean."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pass_strategies import drawn_passes, pass_blocks

from howsure.statistics.measures.passes import mean_log_probability


@pytest.mark.parametrize("n_classes", [2, 1000])
def test_it_is_the_logarithm_of_the_mean(n_classes):
    log_p, _ = drawn_passes(30, 7, n_classes)
    found = mean_log_probability(log_p)
    assert found.dtype == np.float64
    np.testing.assert_allclose(found, np.log(np.exp(log_p).mean(axis=1)), rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(np.exp(found).sum(axis=1), 1, rtol=1e-12)


def test_it_keeps_what_float64_could_not_hold():
    log_p = np.full((1, 4, 2), -1e-300)
    log_p[0, :, 1] = [-2000.0, -2001.0, -3000.0, -np.inf]
    expected = -2000 + np.log((1 + np.exp(-1.0)) / 4)
    assert mean_log_probability(log_p)[0, 1] == pytest.approx(expected, rel=1e-15)


def test_a_class_ruled_out_by_one_pass_is_not_by_the_mean_and_by_all_it_is():
    with np.errstate(divide="ignore"):
        log_p = np.log([[[1.0, 0.0, 0.0], [0.5, 0.5, 0.0]]])
    np.testing.assert_allclose(np.exp(mean_log_probability(log_p)), [[0.75, 0.25, 0.0]])
    assert mean_log_probability(log_p)[0, 2] == -np.inf


@given(log_p=pass_blocks(), n_passes=st.integers(1, 9))
def test_passes_that_are_the_same_are_their_mean(log_p, n_passes):
    same = np.repeat(log_p[:, :1], n_passes, axis=1)
    np.testing.assert_array_equal(mean_log_probability(same), log_p[:, 0])


@given(log_p=pass_blocks(), data=st.data())
def test_neither_samples_nor_the_order_of_passes_show(log_p, data):
    passes = data.draw(st.permutations(range(log_p.shape[1])))
    found = mean_log_probability(log_p)
    np.testing.assert_allclose(
        mean_log_probability(log_p[:, passes]), found, rtol=1e-12, atol=1e-14
    )
    alone = np.concatenate([mean_log_probability(row[np.newaxis]) for row in log_p])
    np.testing.assert_array_equal(found, alone)

"""Columns of several passes: the covariance's 2-norm, the mean probability, and prefixes."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sample_strategies import drawn_passes, pass_blocks

from howsure.statistics.measures.passes import (
    covariance_norm,
    mean_log_probability,
    prefixes,
)


def numpy_norm(log_p):
    """What the definition says, K x K."""
    return np.array([np.linalg.norm(np.cov(np.exp(row).T), 2) for row in log_p])


@given(log_p=pass_blocks())
def test_norm_is_finite_never_negative_nor_minus_zero_and_near_numpy(log_p):
    found = covariance_norm(log_p)
    assert np.isfinite(found).all()
    assert not np.signbit(found).any()
    np.testing.assert_allclose(found, numpy_norm(log_p), rtol=1e-6, atol=1e-25)


@given(log_p=pass_blocks(), n_passes=st.integers(2, 9))
def test_equal_passes_have_no_spread_and_their_own_mean(log_p, n_passes):
    same = np.repeat(log_p[:, :1], n_passes, axis=1)
    np.testing.assert_array_equal(covariance_norm(same), np.zeros(len(log_p)))
    np.testing.assert_array_equal(covariance_norm(same.astype(np.float32)), np.zeros(len(log_p)))
    np.testing.assert_array_equal(mean_log_probability(same), log_p[:, 0])


def test_norm_takes_single_precision_as_it_is():
    log_p, _ = drawn_passes(20, 7, 10)
    single = log_p.astype(np.float32)
    expected = covariance_norm(single.astype(np.float64))
    np.testing.assert_array_equal(covariance_norm(single), expected)
    np.testing.assert_allclose(expected, numpy_norm(log_p), rtol=1e-4)


@pytest.mark.parametrize(("log_p", "rule"), [
    *((np.zeros(shape), "must have shape") for shape in ((3, 4), (3, 4, 1), (3, 0, 4))),
    (np.zeros((2, 2, 2), dtype=np.int64), "must be floating, not int64"),
    (np.log(np.full((2, 1, 2), 0.5)), "at least 2 passes, not 1"),
    *((np.where(np.arange(60).reshape(4, 3, 5) == 35, bad, -2.0), "pass 1 of row 2")
      for bad in (np.nan, 3.0)),
])  # fmt: skip
def test_norm_refuses_other_arrays(log_p, rule):
    with pytest.raises(ValueError, match=rule):
        covariance_norm(log_p)


def test_mean_is_the_logarithm_of_the_mean_probability_which_float64_could_not_hold():
    for n_classes in (2, 1000):
        log_p, _ = drawn_passes(30, 7, n_classes)
        found = mean_log_probability(log_p)
        assert found.dtype == np.float64
        expected = np.log(np.exp(log_p).mean(axis=1))
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-14)
    log_p = np.full((1, 4, 2), -1e-300)
    log_p[0, :, 1] = [-2000.0, -2001.0, -3000.0, -np.inf]
    expected = -2000 + np.log((1 + np.exp(-1.0)) / 4)
    assert mean_log_probability(log_p)[0, 1] == pytest.approx(expected, rel=1e-15)


def test_usual_numbers_and_then_all():
    usual = (1, 2, 3, 5, 10, 20, 30, 50, 100, 200, 500, 1000)
    assert prefixes(1000) == usual
    assert prefixes(21) == (*usual[:6], 21)
    assert (prefixes(1), prefixes(4)) == ((1,), (1, 2, 3, 4))

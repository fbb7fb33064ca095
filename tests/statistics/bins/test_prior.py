"""The prior, regularised rates and pooled bins."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sample_strategies import binomial_counts
from scipy import stats
from sklearn.isotonic import IsotonicRegression

from howsure.statistics.bins.fit import pool_bins
from howsure.statistics.bins.prior import BetaPrior, fit_prior, posterior_mean


def test_the_prior_is_centred_on_the_accuracy():
    prior = fit_prior(np.array([True, True, False, True]), 2.0)
    assert (prior.accuracy, prior.strength, prior.degenerate) == (0.75, 2.0, False)
    assert (prior.alpha, prior.beta) == (1.5, 0.5)
    for hit, accuracy in ((True, 9.5 / 10), (False, 0.5 / 10)):  # odds stay finite
        prior = fit_prior(np.full(9, hit))
        assert (prior.accuracy, prior.degenerate) == (pytest.approx(accuracy), True)
    assert posterior_mean(np.array([0]), np.array([0]), BetaPrior(0.3, 2.0)) == [0.3]


@given(binomial_counts(), st.floats(0.01, 0.99), st.floats(0.01, 50))
def test_the_regularised_rate_is_the_mean_of_the_posterior(sample, accuracy, strength):
    hits, counts = sample
    prior = BetaPrior(accuracy, strength)
    posterior = stats.beta(hits + strength * accuracy, counts - hits + strength * (1 - accuracy))
    np.testing.assert_allclose(posterior_mean(hits, counts, prior), posterior.mean(), rtol=1e-12)


@pytest.mark.parametrize(
    "wrong", [(0.0, 1), (1.0, 1), (np.nan, 1), (0.5, 0), (0.5, -1), (0.5, np.inf)]
)
def test_a_prior_with_infinite_odds_or_no_weight_is_refused(wrong):
    with pytest.raises(ValueError, match="must"):
        BetaPrior(*wrong)


@given(binomial_counts(max_bins=12), st.floats(0.01, 0.99), st.floats(0.01, 200))
def test_probability_never_rises_with_uncertainty(sample, accuracy, strength):
    prior = BetaPrior(accuracy, strength)
    starts = pool_bins(*sample, prior)
    probability = posterior_mean(*(np.add.reduceat(part, starts) for part in sample), prior)
    assert starts[0] == 0
    assert (np.diff(starts) > 0).all()
    assert (np.diff(probability) <= 0).all()


@given(binomial_counts(max_bins=12), st.floats(0.01, 0.99))
def test_bins_in_order_are_left_alone(sample, accuracy):
    hits, counts = sample
    prior = BetaPrior(accuracy, 1.0)
    order = np.argsort(-posterior_mean(hits, counts, prior), kind="stable")
    starts = pool_bins(hits[order], counts[order], prior)
    np.testing.assert_array_equal(starts, np.arange(len(hits)))


@given(binomial_counts(max_bins=12))
def test_with_a_vanishing_prior_it_is_isotonic_regression(sample):
    hits, counts = sample
    starts = pool_bins(hits, counts, BetaPrior(0.5, 1e-9))
    probability = np.add.reduceat(hits, starts) / np.add.reduceat(counts, starts)
    sizes = np.diff(np.append(starts, len(hits)))
    isotonic = IsotonicRegression(increasing=False)
    expected = isotonic.fit_transform(np.arange(len(hits)), hits / counts, sample_weight=counts)
    np.testing.assert_allclose(np.repeat(probability, sizes), expected, atol=1e-6)


def test_regularisation_decides_and_a_pooled_block_above_both_its_parts_looks_back():
    """10/10 then 999/1000: plain rates fall, regularised ones (.991, .999) rise.

    With a prior of 10 samples at .1: .55 | .50 .52, and the last two pool to .65.
    """
    assert pool_bins(np.array([10, 999]), np.array([10, 1000]), BetaPrior(0.9, 1.0)).tolist() == [0]
    hits, counts, prior = np.array([10, 9, 10]), np.array([10, 10, 11]), BetaPrior(0.1, 10.0)
    parts = posterior_mean(hits, counts, prior)
    (pair,) = posterior_mean(np.array([19]), np.array([21]), prior)
    assert parts[1] < parts[2] < parts[0] < pair
    assert pool_bins(hits, counts, prior).tolist() == [0]

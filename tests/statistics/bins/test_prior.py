import numpy as np
import pytest
from core_strategies import binomial_counts, quick
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from howsure.statistics.bins.prior import BetaPrior, fit_prior, posterior_mean


def test_the_prior_is_centred_on_the_accuracy():
    prior = fit_prior(np.array([True, True, False, True]), 2.0)
    assert (prior.accuracy, prior.strength, prior.degenerate) == (0.75, 2.0, False)
    assert (prior.alpha, prior.beta) == (1.5, 0.5)


@pytest.mark.parametrize(("hit", "accuracy"), [(True, 9.5 / 10), (False, 0.5 / 10)])
def test_an_event_without_exception_leaves_odds_finite(hit, accuracy):
    prior = fit_prior(np.full(9, hit))
    assert prior.accuracy == pytest.approx(accuracy)
    assert prior.degenerate


@quick
@given(binomial_counts(), st.floats(0.01, 0.99), st.floats(0.01, 50))
def test_the_regularised_rate_is_the_mean_of_the_posterior(sample, accuracy, strength):
    hits, counts = sample
    prior = BetaPrior(accuracy, strength)
    posterior = stats.beta(hits + strength * accuracy, counts - hits + strength * (1 - accuracy))
    np.testing.assert_allclose(posterior_mean(hits, counts, prior), posterior.mean(), rtol=1e-12)


def test_ten_of_ten_falls_below_999_of_1000():
    """The worked example of regularisation: .9909 and .9989 at an accuracy of .9."""
    rates = posterior_mean(np.array([10, 999]), np.array([10, 1000]), BetaPrior(0.9, 1.0))
    np.testing.assert_allclose(rates, [10.9 / 11, 999.9 / 1001])
    assert rates.round(4).tolist() == [0.9909, 0.9989]


def test_an_empty_bin_has_the_prior_mean():
    assert posterior_mean(np.array([0]), np.array([0]), BetaPrior(0.3, 2.0)) == [0.3]


@pytest.mark.parametrize(
    ("accuracy", "strength"), [(0.0, 1), (1.0, 1), (np.nan, 1), (0.5, 0), (0.5, -1), (0.5, np.inf)]
)
def test_a_prior_with_infinite_odds_or_no_weight_is_refused(accuracy, strength):
    with pytest.raises(ValueError, match="must"):
        BetaPrior(accuracy, strength)


def test_no_samples_have_no_accuracy():
    with pytest.raises(ValueError, match="at least one sample"):
        fit_prior(np.array([], dtype=bool))

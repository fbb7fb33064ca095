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


def test_an_empty_bin_has_the_prior_mean():
    assert posterior_mean(np.array([0]), np.array([0]), BetaPrior(0.3, 2.0)) == [0.3]


@pytest.mark.parametrize(
    ("accuracy", "strength"), [(0.0, 1), (1.0, 1), (np.nan, 1), (0.5, 0), (0.5, -1), (0.5, np.inf)]
)
def test_a_prior_with_infinite_odds_or_no_weight_is_refused(accuracy, strength):
    with pytest.raises(ValueError, match="must"):
        BetaPrior(accuracy, strength)

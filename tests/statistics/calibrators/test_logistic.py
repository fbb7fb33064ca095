"""Logistic regression, against scikit-learn.

Conventions: scikit-learn's ``C`` is one over our penalty, on the same standardised features, and
like ours it leaves the intercept alone.
"""

import numpy as np
import pytest
from sample_strategies import records_with_ranks, simulated_records
from scipy.special import expit
from sklearn.linear_model import LogisticRegression

from howsure.statistics.calibrators.logistic import (
    PENALTY,
    beta_features,
    fit_beta_calibration,
    fit_logistic,
    fit_quadratic_logistic,
    quadratic_features,
)
from howsure.statistics.fit.baselines import BASELINES
from howsure.statistics.fit.event_samples import ALL, EventSamples

RECORDS = simulated_records(2000, seed=4, sharpness=2.0)


def by_scikit_learn(features, hits):
    scaled = (features - features.mean(axis=0)) / features.std(axis=0)
    model = LogisticRegression(C=1.0 / PENALTY, tol=1e-10, max_iter=10_000).fit(scaled, hits)
    return model.decision_function(scaled)


@pytest.mark.parametrize("k", [1, 5])
def test_quadratic(k):
    samples = EventSamples(RECORDS, k)
    x = samples.log_odds
    expected = by_scikit_learn(np.stack([x, x**2], axis=1), samples.hits)
    found = fit_quadratic_logistic(x, samples.hits, samples.weights).log_odds(quadratic_features(x))
    np.testing.assert_allclose(expit(found), expit(expected), atol=1e-5)
    fitted = BASELINES["quadratic_logistic"].fit(samples, ALL)
    np.testing.assert_array_equal(fitted(samples).probability, expit(found))
    assert set(fitted.parameters) == {"a", "b", "c"}


@pytest.mark.parametrize("k", [1, 5])
def test_beta_calibration(k):
    samples = EventSamples(RECORDS, k)
    features = np.stack([-samples.neg_log_mass, -samples.log_rest], axis=1)
    fitted = fit_beta_calibration(
        -samples.neg_log_mass, samples.log_rest, samples.hits, samples.weights
    )
    assert (fitted.slopes >= 0.0).all()
    expected = by_scikit_learn(features[:, fitted.slopes > 0.0], samples.hits)
    np.testing.assert_allclose(expit(fitted.log_odds(features)), expit(expected), atol=1e-5)
    np.testing.assert_array_equal(beta_features(-samples.neg_log_mass, samples.log_rest), features)
    said = BASELINES["beta_calibration"].fit(samples, ALL)(samples).probability
    np.testing.assert_array_equal(said, expit(fitted.log_odds(features)))


def test_beta_calibration_never_falls_with_confidence():
    """Labels that are right where the model doubts: both slopes come out negative or zero."""
    records = simulated_records(300, seed=1)
    order = np.argsort(records.uncertainty["neg_log_pmax"])
    records.label_rank[order] = np.arange(300) < 150
    samples = EventSamples(records, 1)
    fitted = BASELINES["beta_calibration"].fit(samples, ALL)
    assert min(fitted.parameters["a"], fitted.parameters["b"]) >= 0.0
    assert (np.diff(fitted(samples).probability[order]) <= 1e-12).all()


@pytest.mark.parametrize("rank", [0, 1])
def test_hits_alone_or_misses_alone_are_given_half_a_sample_of_the_other(rank):
    samples = EventSamples(records_with_ranks([rank] * 20), 1)
    expected = 20.5 / 21 if rank == 0 else 0.5 / 21
    for name in ("quadratic_logistic", "beta_calibration"):
        said = BASELINES[name].fit(samples, ALL)(samples).probability
        np.testing.assert_allclose(said, expected, rtol=1e-12)


def test_separated_samples_have_a_finite_fit_and_saturated_masses_finite_log_odds():
    features = np.linspace(-1, 1, 40)[:, np.newaxis]
    found = fit_logistic(features, features[:, 0] > 0, np.ones(len(features)))
    assert np.isfinite([*found.slopes, found.intercept]).all()
    np.testing.assert_array_equal(found.log_odds(features) > 0, features[:, 0] > 0)
    records = records_with_ranks([0, 0])
    records.uncertainty["neg_log_topk_mass_1"][:] = [0.0, np.float32(1e-40)]
    samples = EventSamples(records, 1)
    for one, other in (samples.log_odds, samples.log_rest, samples.neg_log_mass):
        assert one == other
        assert np.isfinite(one)


@pytest.mark.parametrize("n_samples", [3, 49, 903])
def test_values_whose_mean_rounds_are_no_variation(n_samples):
    """The mean of three times .1 is not .1: the slope of that difference says anything."""
    hits = np.arange(n_samples) % 2 == 0
    found = fit_logistic(np.full((n_samples, 1), 0.1), hits, np.ones(n_samples))
    np.testing.assert_array_equal(found.slopes, 0.0)
    assert expit(found.log_odds(np.array([[0.2]]))[0]) == pytest.approx(hits.mean(), rel=1e-5)

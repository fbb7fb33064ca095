"""Isotonic regression, the raw softmax, and temperature scaling from the stored grid."""

import numpy as np
import pytest
from sample_strategies import calibrated, records_of, records_with_ranks, simulated_records
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax, logsumexp, softmax
from sklearn.isotonic import IsotonicRegression

from howsure.statistics.calibrators.isotonic import fit_isotonic
from howsure.statistics.calibrators.temperature import fit_temperature, scaled_neg_log_mass
from howsure.statistics.fit.baselines import BASELINES
from howsure.statistics.fit.event_samples import ALL, EventSamples
from howsure.statistics.records.records import TEMPERATURES


@pytest.mark.parametrize("tied", [False, True])
def test_isotonic_regression_is_that_of_scikit_learn(tied):
    """Both give tied points their mean first."""
    records = simulated_records(800, seed=6, sharpness=2.0)
    if tied:
        column = records.uncertainty["neg_log_topk_mass_1"]
        column[:] = np.round(column, 1)
    rows = np.arange(0, 800, 2)
    samples = EventSamples(records, 1)
    x, hits = samples.log_odds, samples.hits
    expected = IsotonicRegression(out_of_bounds="clip").fit(x[rows], hits[rows])
    fitted = fit_isotonic(x[rows], hits[rows], np.ones(len(rows)))
    np.testing.assert_allclose(fitted.probability(x), expected.predict(x), atol=1e-9)


def test_raw_softmax_is_the_mass_of_the_top_classes():
    logits = np.random.default_rng(3).normal(size=(50, 8)) * 4.0
    records = records_of(logits, np.zeros(50, np.int64), top_k=(1, 3))
    descending = np.sort(softmax(logits, axis=1), axis=1)[:, ::-1]
    raw = BASELINES["raw_softmax"]
    for k in (1, 3):
        samples = EventSamples(records, k)
        probability = raw.fit(samples, np.arange(0))(samples).probability
        np.testing.assert_allclose(probability, descending[:, :k].sum(axis=1), rtol=1e-6)


def test_raw_softmax_ranks_confident_samples_where_the_probability_is_one():
    """What a device may flush to zero is equal."""
    flushed = records_with_ranks([0, 0, 0])
    flushed.uncertainty["neg_log_topk_mass_1"][:] = np.float32([0.0, 1e-40, 2e-37])
    certain = records_of(np.outer([50.0, 60.0, 70.0], np.eye(6)[0]), np.zeros(3, np.int64))
    samples = [EventSamples(records, 1) for records in (certain, flushed)]
    sure, tied = (BASELINES["raw_softmax"].fit(one, ALL)(one) for one in samples)
    assert (sure.probability == 1.0).all()
    assert (np.diff(sure.uncertainty) < 0.0).all()
    assert tied.uncertainty[0] == tied.uncertainty[1] < tied.uncertainty[2]


def best_temperature(logits, labels, rows=ALL):
    records = records_of(logits, labels)
    return fit_temperature(
        records.log_sum_exp[rows], records.label_logit[rows], records.weights[rows]
    )


def drawn(temperature, *, n_samples=3000):
    """Return logits whose softmax at this temperature is the truth."""
    logits, labels = calibrated(n_samples, spread=3.0 / temperature)
    return logits * temperature, labels


def loss(logits, labels, temperature):
    log_p = log_softmax(logits / temperature, axis=1)
    return -log_p[np.arange(len(labels)), labels].mean()


@pytest.mark.parametrize("temperature", [0.02, 0.5, 1.0, 4.0, 50.0])
def test_temperature_is_that_of_least_loss(temperature):
    logits, labels = drawn(temperature)
    options = {"bounds": np.log([1 / 64, 128.0]), "method": "bounded"}
    exact = minimize_scalar(lambda u: loss(logits, labels, np.exp(u)), **options)
    found = best_temperature(logits, labels)
    is_usual = 0.25 <= temperature <= 8.0
    assert not is_usual or found == pytest.approx(np.exp(exact.x), rel=2e-3)
    assert loss(logits, labels, found) == pytest.approx(exact.fun, abs=2e-6 if is_usual else 1e-4)


@pytest.mark.parametrize(("temperature", "k"), [
    (0.26, 1), (7.9, 3), (TEMPERATURES[7], 3), (TEMPERATURES[30], 3), (TEMPERATURES[39], 1),
])  # fmt: skip
def test_the_mass_after_scaling_is_that_of_the_logits(temperature, k):
    logits, labels = drawn(1.0, n_samples=500)
    descending = np.sort(logits / temperature, axis=1)[:, ::-1]
    rest = logsumexp(descending[:, k:], axis=1) - logsumexp(descending[:, :k], axis=1)
    records = records_of(logits, labels, top_k=(1, 3))
    found = scaled_neg_log_mass(records.log_sum_exp, records.top_logits[:, :k], temperature)
    np.testing.assert_allclose(found, np.log1p(np.exp(rest)), rtol=2e-3, atol=1e-6)


def test_labels_that_are_always_right_get_the_least_temperature_and_never_the_most():
    logits, _ = drawn(1.0, n_samples=50)
    assert best_temperature(logits, logits.argmax(axis=1)) == pytest.approx(1 / 64, rel=1e-3)
    assert best_temperature(logits, logits.argmin(axis=1)) == pytest.approx(128.0, rel=1e-3)


def test_labels_of_classes_that_are_ruled_out_teach_nothing():
    logits, labels = drawn(2.0)
    logits[:100, 0], labels[:100] = -np.inf, 0
    others = best_temperature(logits, labels, slice(100, None))
    assert best_temperature(logits, labels) == pytest.approx(others, rel=1e-6)
    assert best_temperature(logits, labels, slice(100)) == 1.0

"""Temperature scaling from the stored grid, against the logits themselves."""

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax, logsumexp, softmax

from howsure.statistics.calibrators.temperature import fit_temperature, scaled_neg_log_mass
from howsure.statistics.fit.event_samples import ALL
from howsure.statistics.records.build import build_records
from howsure.statistics.records.order import tie_keys
from howsure.statistics.records.records import TEMPERATURES


def records_of(logits, labels, top_k=(1, 3)):
    return build_records(logits, labels, tie_keys=tie_keys(logits, 0), top_k=top_k)


def best_temperature(records, rows=ALL):
    return fit_temperature(records.log_sum_exp[rows], records.label_logit[rows])


def neg_log_mass(records, k, temperature):
    return scaled_neg_log_mass(records.log_sum_exp, records.top_logits[:, :k], temperature)


def drawn(temperature, *, n_samples=3000, n_classes=10, seed=0):
    """Logits whose softmax at this temperature is the truth."""
    rng = np.random.default_rng(seed)
    logits = rng.normal(size=(n_samples, n_classes)) * 3.0
    chance = np.cumsum(softmax(logits / temperature, axis=1), axis=1)
    labels = (chance < rng.random((n_samples, 1))).sum(axis=1)
    return logits, np.minimum(labels, n_classes - 1)


def loss(logits, labels, temperature):
    log_p = log_softmax(logits / temperature, axis=1)
    return -log_p[np.arange(len(labels)), labels].mean()


@pytest.mark.parametrize("temperature", [0.5, 1.0, 4.0])
def test_is_the_temperature_of_least_loss(temperature):
    logits, labels = drawn(temperature)
    exact = minimize_scalar(
        lambda u: loss(logits, labels, np.exp(u)), bounds=np.log([0.25, 8.0]), method="bounded"
    )
    found = best_temperature(records_of(logits, labels), np.arange(len(labels)))
    assert found == pytest.approx(np.exp(exact.x), rel=2e-3)
    assert loss(logits, labels, found) == pytest.approx(exact.fun, abs=2e-6)


@pytest.mark.parametrize("temperature", [0.26, 1.31, *TEMPERATURES[[0, 7]]])
def test_the_mass_after_scaling_is_that_of_the_logits(temperature):
    logits, labels = drawn(1.0, n_samples=500)
    records = records_of(logits, labels)
    descending = np.sort(softmax(logits / temperature, axis=1), axis=1)[:, ::-1]
    for k in (1, 3):
        mass = np.exp(-neg_log_mass(records, k, temperature))
        np.testing.assert_allclose(mass, descending[:, :k].sum(axis=1), atol=2e-4)
        assert (mass <= 1.0).all()


@pytest.mark.parametrize("temperature", [0.3, 1.31, 7.9])
def test_a_mass_next_to_one_is_as_well_known(temperature):
    logits, labels = drawn(1.0, n_samples=500)
    descending = np.sort(logits / temperature, axis=1)[:, ::-1]
    rest = logsumexp(descending[:, 3:], axis=1) - logsumexp(descending[:, :3], axis=1)
    found = neg_log_mass(records_of(logits, labels), 3, temperature)
    np.testing.assert_allclose(found, np.log1p(np.exp(rest)), rtol=2e-3, atol=1e-6)


def test_labels_that_are_always_right_get_the_least_temperature_and_never_the_most():
    logits, _ = drawn(1.0, n_samples=50)
    rows = np.arange(50)
    right = best_temperature(records_of(logits, logits.argmax(axis=1)), rows)
    wrong = best_temperature(records_of(logits, logits.argmin(axis=1)), rows)
    assert right == pytest.approx(0.25, rel=1e-3)
    assert wrong == pytest.approx(8.0, rel=1e-3)


def test_labels_of_classes_that_are_ruled_out_teach_nothing():
    logits, labels = drawn(2.0)
    ruled_out = logits.copy()
    ruled_out[:100, 0] = -np.inf
    labels[:100] = 0
    records = records_of(ruled_out, labels)
    all_rows = best_temperature(records, np.arange(3000))
    assert all_rows == pytest.approx(best_temperature(records, np.arange(100, 3000)), rel=1e-6)
    assert best_temperature(records, np.arange(100)) == 1.0

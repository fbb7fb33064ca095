"""The spread of passes and the slope of the confidence against 400-digit decimal arithmetic."""

import decimal
from decimal import Decimal

import numpy as np
import pytest

from howsure.statistics.measures.gradient import slopes
from howsure.statistics.measures.passes import covariance_norm

DIGITS = decimal.Context(prec=400, Emin=decimal.MIN_EMIN, Emax=decimal.MAX_EMAX)


def exact_norm(others):
    """Return the norm for one sample: log p of all classes but the one that leads, by pass."""
    with decimal.localcontext(DIGITS):
        p = in_decimal(others)
        p = np.column_stack([1 - p.sum(axis=1), p])
        deviations = p - p.sum(axis=0) / len(p)
        return float(largest_eigenvalue(deviations @ deviations.T / (len(p) - 1)))


def in_decimal(logarithms):
    return np.array([[Decimal(float(value)).exp() for value in row] for row in logarithms])


def largest_eigenvalue(matrix):
    """Square until one eigenvector is left: by 2^40 powers, whatever the gap above 1e-10."""
    power = matrix
    for _ in range(40):
        power = power / power.trace()
        power = power @ power
    vector = max(power, key=lambda row: row @ row)
    return vector @ matrix @ vector / (vector @ vector)


def with_leader(others):
    """Put the class that leads first, as float64 rounds its log-probability."""
    leader = np.log1p(-np.exp(others).sum(axis=-1, keepdims=True))
    return np.concatenate([leader, others], axis=-1)


@pytest.mark.parametrize(("gap", "n_passes", "n_classes"), [
    (3.0, 2, 2), (20.0, 3, 6), (35.0, 8, 4), (50.0, 2, 2), (100.0, 3, 6), (340.0, 8, 4),
])  # fmt: skip
def test_digits_are_kept_next_to_certainty(gap, n_passes, n_classes):
    """At a gap of 340 the probabilities beside the leader are 1e-148, the norm is 1e-296."""
    rng = np.random.default_rng(n_passes)
    others = rng.normal(size=(6, n_passes, n_classes - 1)) - gap - np.log(n_classes)
    expected = [exact_norm(row) for row in others]
    assert 0 < max(expected) < 100 * np.exp(-2 * gap)
    np.testing.assert_allclose(covariance_norm(with_leader(others)), expected, rtol=1e-11)


@pytest.mark.parametrize("spread", [1e-3, 1e-6, 1e-10])
def test_digits_are_kept_where_the_passes_all_but_agree(spread):
    rng = np.random.default_rng(1)
    base = rng.normal(size=(6, 1, 4)) - 4
    others = base + spread * rng.normal(size=(6, 5, 4))
    expected = [exact_norm(row) for row in others]
    np.testing.assert_allclose(covariance_norm(with_leader(others)), expected, rtol=1e-12)


def exact_slope(plus, minus, distance):
    with decimal.localcontext(DIGITS):
        weights = in_decimal([plus, minus])
        p = weights / weights.sum(axis=1, keepdims=True)
        one, other = (p**2).sum(axis=1)
        return float((one.sqrt() - other.sqrt()) / Decimal(distance))


@pytest.mark.parametrize("lead", [0.0, 5.0, 35.0, 60.0, 250.0])
def test_slopes_keep_their_digits(lead):
    rng = np.random.default_rng(2)
    plus = rng.normal(size=(20, 6))
    plus[:, 0] += lead
    minus = plus + 1e-3 * rng.normal(size=(20, 6))
    expected = [exact_slope(*pair, 2e-3) for pair in zip(plus, minus, strict=True)]
    found = slopes(plus, minus, distance=2e-3)
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12 * np.exp(-lead))
    assert (found != 0).all()

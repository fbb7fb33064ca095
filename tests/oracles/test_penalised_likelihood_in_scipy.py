"""Curves: the same posteriors by scipy's general minimiser.

Designs, penalties and second derivatives are written out densely here, from the docs' formulas.
"""

from itertools import product

import numpy as np
import pytest
from scipy.interpolate import BSpline
from scipy.optimize import minimize
from scipy.special import expit, logit

from howsure.statistics.calibrators.spline import (
    POLYNOMIAL_SCALES,
    SPLINE_SCALES,
    fit_spline,
    interval_scales,
)


def dense_posterior(design, offset, hits, precision):
    """Return the mode, its covariance, and the log marginal likelihood by Laplace's formula."""

    def loss(at):
        log_odds = offset + design @ at
        return np.sum(np.logaddexp(0, log_odds) - hits * log_odds) + at @ precision @ at / 2

    def gradient(at):
        return design.T @ (expit(offset + design @ at) - hits) + precision @ at

    options = {"jac": gradient, "method": "BFGS", "options": {"gtol": 1e-8}}
    found = minimize(loss, np.zeros(design.shape[1]), **options)
    p = expit(offset + design @ found.x)
    curvature = design.T @ np.diag(p * (1 - p)) @ design + precision
    volume = np.linalg.slogdet(precision)[1] - np.linalg.slogdet(curvature)[1]
    return found.x, np.linalg.inv(curvature), volume / 2 - found.fun


def drawn(n_samples=150):
    rng = np.random.default_rng(0)
    x = np.sort(rng.normal(1.5, 2.0, n_samples))
    return x, rng.random(n_samples) < expit(0.6 * x - 0.5 + np.sin(x))


def spline_design(x):
    """Columns 1, u, u^2 - 1, and ten cubic B-splines on the ranks (i - 1/2) / n."""
    u = (x - x.mean()) / x.std()
    ranks = (np.arange(len(x)) + 0.5) / len(x)
    knots = [0, 0, 0, *np.linspace(0, 1, 8), 1, 1, 1]
    splines = [BSpline.basis_element(knots[i : i + 5], extrapolate=False) for i in range(10)]
    columns = [np.nan_to_num(spline(ranks)) for spline in splines]
    return np.column_stack([np.ones_like(u), u, u**2 - 1, *columns])


def spline_precision(polynomial, spline, *, prior):
    scales = [2 * polynomial, polynomial, polynomial / 2] if prior else [10, 10, 5]
    precision = np.zeros((13, 13))
    precision[[0, 1, 2], [0, 1, 2]] = 1 / np.square(scales)
    for i in range(8):
        bend = np.zeros(10)
        bend[i : i + 3] = 1, -2, 1
        precision[3:, 3:] += np.outer(bend, bend) / spline**2
    precision[3:, 3:] += 0.01 * np.eye(10) / spline**2
    return precision


@pytest.mark.parametrize("prior", [True, False])
def test_spline_and_its_interval_and_weights(prior):
    x, hits = drawn()
    found = fit_spline(x, hits, np.ones(len(x)), prior=prior)
    design, offset = spline_design(x), x if prior else 0 * x
    evidence, probabilities = [], []
    for scales in product(POLYNOMIAL_SCALES, SPLINE_SCALES):
        precision = spline_precision(*scales, prior=prior)
        mode, covariance, likely = dense_posterior(design, offset, hits, precision)
        variance = np.sum(design @ covariance * design, axis=1)
        evidence.append(likely)
        probabilities.append(expit((offset + design @ mode) / np.sqrt(1 + np.pi * variance / 8)))
    # Each pair with each share of labels that a coin draws; none has a prior probability of 0.7.
    shares = np.array([0, 0.005, 0.01, 0.02, 0.04, 0.08, 0.16])
    joint, stated = [], []
    for likely, curve in zip(evidence, probabilities, strict=True):
        of_curve = np.prod(np.where(hits, curve, 1 - curve))
        for share in shares:
            mixed = (1 - share) * curve + share / 2
            beforehand = 0.05 if share else 0.7
            gain = np.prod(np.where(hits, mixed, 1 - mixed)) / of_curve
            joint.append(beforehand * np.exp(likely - max(evidence)) * gain)
            stated.append(mixed)
    joint = np.array(joint) / sum(joint)
    # Newton stops where a step gains less than 1e-5 nats.
    pairs = joint.reshape(len(evidence), -1).sum(axis=1)
    np.testing.assert_allclose(found.weights, pairs, rtol=1e-4, atol=1e-7)
    expected = expit(logit(joint @ stated) + found.shift)
    np.testing.assert_allclose(found.probability(x), expected, atol=1e-4)

    precision = spline_precision(*interval_scales(len(x)), prior=prior)
    mode, covariance, _ = dense_posterior(design, offset, hits, precision)
    p = expit(offset + design @ mode)
    covariance = covariance @ (design.T @ np.diag(p * (1 - p)) @ design) @ covariance
    half = 1.959964 * np.sqrt(np.sum(design @ covariance * design, axis=1))
    for bound, sign in zip(found.interval(x, 0.95), (-1, 1), strict=True):
        np.testing.assert_allclose(bound, expit(offset + design @ mode + sign * half), atol=1e-3)

"""Logistic regression: on any features, quadratic in one, and beta calibration."""

from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from howsure.statistics.arrays import Floats, Hits, centre_and_width

PENALTY = 1e-3
MOST_STEPS = 100
TOLERANCE = 1e-10


@dataclass(frozen=True, eq=False)
class LogisticFit:
    """``P(hit) = expit(intercept + features @ slopes)``.

    Attributes
    ----------
    intercept : float
    slopes : ndarray of float64, shape (n_features,)
    """

    intercept: float
    slopes: Floats

    def log_odds(self, features: Floats) -> Floats:
        """Return the log-odds of a hit for each row of features, shape (n_samples,)."""
        return np.asarray(self.intercept + features @ self.slopes, dtype=np.float64)


def fit_logistic(features: Floats, hits: Hits, weights: Floats) -> LogisticFit:
    """Fit by Newton's method with a very small ridge penalty.

    The penalty is half of `PENALTY` times the squared slopes of the standardised features. It has
    no visible effect if the data determine the fit, and keeps slopes finite if the features
    separate hits from misses. Without hits, or without misses, slopes are 0 and the probability is
    ``(k + 1/2) / (n + 1)``, as in the prior of a bin table.

    Parameters
    ----------
    features : ndarray of float64, shape (n_samples, n_features)
        Finite.
    hits : ndarray of bool, shape (n_samples,)
    weights : ndarray of float64, shape (n_samples,)
        How much each sample counts; only their ratios matter.
    """
    n_samples, n_features = features.shape
    n_hits = float(np.count_nonzero(hits))
    # Shares of the samples: they sum to their number, so that the penalty means the same.
    counts = weights * (n_samples / weights.sum())
    if 0.0 < n_hits < n_samples:
        n_hits = float(counts @ hits)
    start = float(np.log((n_hits + 0.5) / (n_samples - n_hits + 0.5)))
    if n_hits in (0.0, n_samples):
        return LogisticFit(start, np.zeros(n_features))
    centre, scale = centre_and_width(features, counts)
    # Not by the scale: rounding of the mean can give equal values a tiny standard deviation.
    varies = np.ptp(features, axis=0) > 0.0
    design = np.ones((n_samples, 1 + int(varies.sum())))
    design[:, 1:] = (features[:, varies] - centre[varies]) / scale[varies]
    penalty = np.full(design.shape[1], PENALTY)
    penalty[0] = 0.0
    found = np.zeros(design.shape[1])
    found[0] = start
    found = _newton(design, hits.astype(np.float64), counts, penalty, found)
    slopes = np.zeros(n_features)
    slopes[varies] = found[1:] / scale[varies]
    return LogisticFit(float(found[0] - centre @ slopes), slopes)


def quadratic_features(x: Floats) -> Floats:
    """Return ``x`` and its square, shape (n_samples, 2)."""
    return np.stack([x, np.square(x)], axis=1)


def fit_quadratic_logistic(x: Floats, hits: Hits, weights: Floats) -> LogisticFit:
    """Fit ``log-odds = c + a x + b x^2``; with ``b = 0`` it is Platt's scaling (Platt 1999).

    The parabola may turn, so the most certain samples may get lower probabilities.
    """
    return fit_logistic(quadratic_features(x), hits, weights)


def beta_features(log_mass: Floats, log_rest: Floats) -> Floats:
    """Return ``log s`` and ``-log(1 - s)``, shape (n_samples, 2)."""
    return np.stack([log_mass, -log_rest], axis=1)


def fit_beta_calibration(
    log_mass: Floats, log_rest: Floats, hits: Hits, weights: Floats
) -> LogisticFit:
    """Fit ``log-odds = c + a log s - b log(1 - s)`` with ``a, b >= 0``: Kull et al. 2017, eq. (3).

    A negative slope is set to 0 and the others are fitted again, as the authors do.
    """
    features = beta_features(log_mass, log_rest)
    kept = np.ones(2, dtype=np.bool_)
    while True:
        fitted = fit_logistic(features[:, kept], hits, weights)
        slopes = np.zeros(2)
        slopes[kept] = fitted.slopes
        if (slopes >= 0.0).all():
            return LogisticFit(fitted.intercept, slopes)
        kept &= slopes >= 0.0


def _newton(
    design: Floats, truth: Floats, counts: Floats, penalty: Floats, weights: Floats
) -> Floats:
    """Minimise the penalised loss, which is convex; a step that raises it is halved."""

    def loss(at: Floats) -> float:
        margin = design @ at
        losses = counts * (np.logaddexp(0.0, margin) - truth * margin)
        return float(losses.sum() + penalty @ at**2 / 2.0)

    now = loss(weights)
    for _ in range(MOST_STEPS):
        said = expit(design @ weights)
        residuals, variances = counts * (said - truth), counts * said * (1.0 - said)
        gradient = design.T @ residuals + penalty * weights
        curvature = (design * variances[:, np.newaxis]).T @ design + np.diag(penalty)
        step = np.linalg.lstsq(curvature, gradient, rcond=None)[0]
        if gradient @ step <= TOLERANCE:
            break
        size, then = 1.0, loss(weights - step)
        while size > TOLERANCE and not then < now:
            size /= 2.0
            then = loss(weights - size * step)
        if size <= TOLERANCE:
            break
        weights, now = weights - size * step, then
    return weights

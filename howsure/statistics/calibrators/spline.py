"""Bayesian spline logistic regression: a smooth curve through hits, with intervals.

The log-odds of a hit at ``x`` are ``f(x) = prior(x) + polynomial(x) + spline(x)``: the prior mean,
a quadratic, and a cubic P-spline (Eilers & Marx 1996) on the ranks of ``x``, whose second
differences are penalised. All coefficients have normal priors. Their two scales are not chosen, but
averaged over a grid with weights proportional to the marginal likelihood (Laplace's approximation:
Tierney & Kadane 1986), so that a small or calibrated set moves the curve only a little away from
its prior mean. The average leaves room for labels that no score explains, and is shifted if it
overstates rare outcomes.
"""

from dataclasses import dataclass, replace
from functools import cache, cached_property
from itertools import product

import numpy as np
import scipy  # its parts are imported when first used: half a second at the start of a command
from scipy.special import expit, logit, ndtri

from howsure.statistics.arrays import LEAST_WIDTH, Floats, Hits, Rates

N_SPLINES = 10
POLYNOMIAL_SCALES = (0.025, 0.15, 0.75, 5.0)
SPLINE_SCALES = (1e-3, 0.1, 0.3, 1.0)
MAX_POINTS = 200
MOST_SHIFT = 50.0
MOST_STEPS = 60
TOLERANCE = 1e-5
# Shares of labels that may be drawn by a coin, and the prior probability that none are.
LAPSES = (0.0, 0.005, 0.01, 0.02, 0.04, 0.08, 0.16)
NO_LAPSE = 0.7
TINY = 2.0**-53  # of the numbers below 1, 1 - TINY is the largest


@dataclass(frozen=True, eq=False)
class SplineFit:
    """The posterior of the curve for each pair of scales; the last pair serves the interval.

    Attributes
    ----------
    points : ndarray of float64, shape (n_points,)
        Ascending ``x`` of the data, joined to at most 200 points.
    ranks : ndarray of float64, shape (n_points,)
        Share of the samples below each point, in (0, 1).
    centre, scale : float
        Mean and standard deviation of ``x``.
    has_prior : bool
        Whether the prior mean of the log-odds is ``x`` itself, otherwise 0.
    weights : ndarray of float64, shape (n_scales - 1,)
        Posterior weights of the pairs of scales.
    coefficients : ndarray of float64, shape (n_scales, n_terms)
    covariances : ndarray of float64, shape (n_scales, n_terms, n_terms)
        The last one, for the interval, is that of the mode over samples, not the posterior's.
    lapses : ndarray of float64, shape (n_scales - 1,)
        Expected share of labels drawn by a coin, beside the curve of each pair.
    shift : float
        Added to the log-odds of the averaged probability: see `_shift`.
    """

    points: Floats
    ranks: Floats
    centre: float
    scale: float
    has_prior: bool
    weights: Floats
    coefficients: Floats
    covariances: Floats
    lapses: Floats
    shift: float = 0.0

    def curves(self, x: Floats) -> Rates:
        """Return the posterior mean under each pair without a lapse, shape (n_scales - 1, n).

        The mean of ``expit(N(m, v))`` is approximated by ``expit(m / sqrt(1 + pi v / 8))``: MacKay
        1992.
        """
        mean, variance = self._log_odds(x, slice(-1))
        return np.asarray(expit(mean / np.sqrt(1.0 + np.pi * variance / 8.0)))

    def probability(self, x: Floats) -> Rates:
        """Return the posterior mean of the probability of a hit, shape (n,).

        Constant beyond the outer points.
        """
        averaged = self.average(self.curves(x))
        return expit(logit(averaged) + self.shift) if self.shift else averaged

    def average(self, curves: Rates) -> Rates:
        """Return the mean of the pairs' curves with their lapses, shape (n,)."""
        averaged = self.weights @ lapsed(curves, self.lapses[:, np.newaxis])
        # The sum of the weights is 1 to rounding, and has no log-odds above it.
        return np.asarray(np.minimum(averaged, 1.0))

    def interval(self, x: Floats, level: float) -> tuple[Rates, Rates]:
        """Return an interval of the probability of a hit at each ``x``, shape (n,) each.

        Normal on the scale of log-odds, under priors that hardly smooth, with the sampling variance
        of the curve: Wood 2006, section 4.8, compares it with the posterior's.
        """
        (mean,), (variance,) = self._log_odds(x, slice(-1, None))
        half = float(ndtri(0.5 + level / 2.0)) * np.sqrt(variance)
        return expit(mean - half), expit(mean + half)

    def _log_odds(self, x: Floats, pairs: slice) -> tuple[Floats, Floats]:
        """Return mean and variance of the log-odds by pair of scales and sample."""
        held = np.clip(x, self.points[0], self.points[-1])
        design = _design(held, self.points, self.ranks, self.centre, self.scale)
        mean = self.coefficients[pairs] @ design.T
        if self.has_prior:
            mean += held
        return mean, np.sum((design @ self.covariances[pairs]) * design, axis=2)


def fit_spline(x: Floats, hits: Hits, counts: Floats, *, prior: bool) -> SplineFit:
    """Fit the curve.

    Parameters
    ----------
    x : ndarray of float64, shape (n_samples,)
        Ascending and finite; a larger value is more certain.
    hits : ndarray of bool, shape (n_samples,)
    counts : ndarray of float64, shape (n_samples,)
        How many samples each one counts for.
    prior : bool
        Whether ``x`` is a log-odds of a hit, around which the curve is expected.
    """
    points, n_hits, counts = _joined(x, hits, counts)
    total = counts.sum()
    ranks = np.minimum((np.cumsum(counts) - counts / 2.0) / total, 1.0)  # but for rounding
    centre = float(points @ counts / total)
    width = float(np.sqrt(np.square(points - centre) @ counts / total))
    scale = max(width, LEAST_WIDTH * float(points[-1] - points[0])) or 1.0
    design = _design(points, points, ranks, centre, scale)
    widest = _precision(*interval_scales(float(total)), prior=prior)
    precisions = np.append(_precisions(prior=prior), [widest], axis=0)
    offset = points if prior else np.zeros_like(points)
    posterior = _Posterior(design, offset, n_hits, counts, precisions)
    coefficients = posterior.maximise()
    evidence, covariances = posterior.at_mode(coefficients)
    # A posterior adds the squared bias that the prior expects; true curves are smoother than that.
    covariances[-1] -= covariances[-1] @ precisions[-1] @ covariances[-1]
    none = np.zeros(len(evidence) - 1)
    fit = SplineFit(points, ranks, centre, scale, prior, none, coefficients, covariances, none)
    curves = fit.curves(points)
    joint = scipy.special.softmax(evidence[:-1] + lapse_evidence(curves, n_hits, counts))
    weights = joint.sum(axis=0)
    lapses = np.array(LAPSES) @ joint / np.maximum(weights, np.finfo(np.float64).tiny)
    fit = replace(fit, weights=weights, lapses=lapses)
    return replace(fit, shift=_shift(fit.average(curves), n_hits.sum(), counts))


def lapsed(probability: Rates, lapse: float | Floats) -> Rates:
    """Return the probabilities if this share of the labels is drawn by a coin.

    A wrong label makes a miss of the surest answer. A few of them in a small set hardly bend the
    curve where answers are surest, and there they are most of the errors.
    """
    return np.asarray((1.0 - lapse) * probability + lapse / 2.0, dtype=np.float64)


def lapse_evidence(probability: Rates, hits: Floats, counts: Floats) -> Floats:
    """Return the log-evidence of each of `LAPSES`, relative to none, prior included.

    Parameters
    ----------
    probability : ndarray of float64, shape (..., n)
        Probability of a hit, if a coin draws no label.
    hits, counts : ndarray of float64, shape (n,)

    Returns
    -------
    ndarray of float64, shape (n_lapses, ...)
    """
    others = (1.0 - NO_LAPSE) / (len(LAPSES) - 1)
    evidence = []
    for lapse in LAPSES:
        rates = np.clip(lapsed(probability, lapse), TINY, 1.0 - TINY)
        likelihood = np.log(rates) @ hits + np.log1p(-rates) @ (counts - hits)
        evidence.append(likelihood + np.log(others if lapse else NO_LAPSE))
    return np.asarray(np.stack(evidence) - (evidence[0] - np.log(NO_LAPSE)))


def interval_scales(n_samples: float) -> tuple[float, float]:
    """Return the scales of polynomial and spline for the interval.

    They are wide: a curve smoothed as much as the served one has a bias that its own variance does
    not show, and its intervals would cover too little. The more samples, the less noise hides that
    bias, and the more the curve may bend.
    """
    return 3.0, float(np.clip(np.cbrt(n_samples / 200.0), 1.0, 3.0))


def _shift(probability: Rates, n_hits: float, counts: Floats) -> float:
    """Return the shift of log-odds after which the mean probability is no nearer 1/2 than the rate.

    With few misses, or few hits, curves of many shapes are likely, and their average is pulled
    towards 1/2. The rate is regularised by one hit and one miss.
    """
    total = counts.sum()
    rate = (n_hits + 1.0) / (total + 2.0)
    log_odds = logit(probability)

    def excess(shift: float) -> float:
        return float(expit(log_odds + shift) @ counts / total - rate)

    away = float(np.sign(2.0 * rate - 1.0))
    if away * excess(0.0) >= 0.0:
        return 0.0
    return float(scipy.optimize.brentq(excess, 0.0, away * MOST_SHIFT))


@cache
def _precisions(*, prior: bool) -> Floats:
    """Return the prior precisions for all pairs of scales of the served curve."""
    pairs = product(POLYNOMIAL_SCALES, SPLINE_SCALES)
    found = np.stack([_precision(*pair, prior=prior) for pair in pairs])
    found.flags.writeable = False
    return found


def _joined(x: Floats, hits: Hits, counts: Floats) -> tuple[Floats, Floats, Floats]:
    """Join neighbours, and all equal x, to at most 200 points; return their x, hits and counts.

    A value on two points would have two ranks: the curve at that value would be one of several.
    """
    firsts = np.flatnonzero(np.diff(x, prepend=-np.inf))  # of each distinct value
    even = np.arange(MAX_POINTS) * len(x) // MAX_POINTS
    starts = firsts[np.unique(np.searchsorted(firsts, even, side="right") - 1)]
    total = np.add.reduceat(counts, starts)
    mean = np.add.reduceat(x * counts, starts) / total
    return mean, np.add.reduceat(hits * counts, starts), total


def _design(x: Floats, points: Floats, ranks: Floats, centre: float, scale: float) -> Floats:
    """Return the terms of the curve: 1, u, u^2 - 1 and the splines, shape (n, n_terms)."""
    u = (x - centre) / scale
    knots = np.concatenate([np.zeros(3), np.linspace(0.0, 1.0, N_SPLINES - 2), np.ones(3)])
    splines = scipy.interpolate.BSpline.design_matrix(
        np.interp(x, points, ranks), knots, 3
    ).toarray()
    return np.column_stack([np.ones_like(u), u, np.square(u) - 1.0, splines])


def _precision(polynomial: float, spline: float, *, prior: bool) -> Floats:
    """Return the prior precision of the terms, shape (n_terms, n_terms)."""
    # The curvature of log-odds is usually much smaller than their shift.
    scales = polynomial * np.array([2.0, 1.0, 0.5]) if prior else np.array([10.0, 10.0, 5.0])
    bends = np.diff(np.eye(N_SPLINES), 2, axis=0)
    precision = np.zeros((3 + N_SPLINES, 3 + N_SPLINES))
    precision[:3, :3] = np.diag(scales**-2.0)
    precision[3:, 3:] = (bends.T @ bends + 0.01 * np.eye(N_SPLINES)) / spline**2
    return precision


@dataclass(frozen=True, eq=False)
class _Posterior:
    """The log-posterior of the coefficients for several priors at once."""

    design: Floats
    offset: Floats
    hits: Floats
    counts: Floats
    precisions: Floats

    @cached_property
    def _products(self) -> Floats:
        """Products of the terms of each point, shape (n_points, n_terms^2)."""
        products = self.design[:, :, np.newaxis] * self.design[:, np.newaxis]
        return products.reshape(len(self.design), -1)

    def maximise(self) -> Floats:
        """Return the modes by Newton's method, shape (n_priors, n_terms)."""
        found = np.zeros(self.precisions.shape[:2])
        loss = self._loss(found)
        for _ in range(MOST_STEPS):
            probability = expit(self._log_odds(found))
            gradient = (probability * self.counts - self.hits) @ self.design
            gradient += np.einsum("sij,sj->si", self.precisions, found)
            step = np.linalg.solve(self._curvature(probability), gradient[..., np.newaxis])[..., 0]
            size = np.ones((len(found), 1))
            for _ in range(MOST_STEPS):
                moved = found - size * step
                now = self._loss(moved)
                worse = now > loss + TOLERANCE / 2.0  # more than rounding
                if not worse.any():
                    break
                size[worse] /= 2.0
            found, gain, loss = moved, loss - now, now
            if (np.abs(gain) < TOLERANCE).all():
                break
        return found

    def at_mode(self, coefficients: Floats) -> tuple[Floats, Floats]:
        """Return the log marginal likelihoods, up to a constant, and the covariances."""
        curvature = self._curvature(expit(self._log_odds(coefficients)))
        volume = np.linalg.slogdet(self.precisions)[1] - np.linalg.slogdet(curvature)[1]
        evidence = np.asarray(volume / 2.0 - self._loss(coefficients), dtype=np.float64)
        return evidence, np.asarray(np.linalg.inv(curvature), dtype=np.float64)

    def _log_odds(self, coefficients: Floats) -> Floats:
        return np.asarray(self.offset + coefficients @ self.design.T)

    def _loss(self, coefficients: Floats) -> Floats:
        log_odds = self._log_odds(coefficients)
        likelihood = np.logaddexp(0.0, log_odds) @ self.counts - log_odds @ self.hits
        penalty = np.einsum("si,sij,sj->s", coefficients, self.precisions, coefficients)
        return np.asarray(likelihood + penalty / 2.0)

    def _curvature(self, probability: Floats) -> Floats:
        weights = probability * (1.0 - probability) * self.counts
        return (weights @ self._products).reshape(self.precisions.shape) + self.precisions

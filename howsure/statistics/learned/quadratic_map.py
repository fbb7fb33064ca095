"""Stage 1 of the learned measure: log-odds moved by a quadratic that may not turn.

Along the line on which all inputs rise together, more mass on other classes must not make a hit
more likely. Where a quadratic would turn, as it does for models whose surest predictions are all
equally good, inputs are clipped, so that the map is flat there instead.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from howsure.statistics.arrays import Floats, centre_and_width, mean_over
from howsure.statistics.fit.event_samples import EventSamples
from howsure.statistics.learned.model import SATURATED_BELOW
from howsure.statistics.learned.recorded import recorded_inputs

MAP_SCALES, MEASURE_SCALES = (0.1, 0.3, 1.0, 3.0), (0.0, 0.1, 0.3, 1.0)
INTERCEPT_SCALE = 3.0
LEAST_SATURATED = 5
MOST_STEPS = 50
# Newton's steps end where the next would gain less. A step is cut to no less than this share of
# it: one that ends just beyond where the penalty of `UPWARDS` begins is cut very short.
LEAST_GAIN, LEAST_SHARE = 1e-10, 1e-10
# Columns of the design: 1, v0, v1, v0^2, saturated | v2, v3, v2^2, v3^2.
N_MAP, N_WEIGHTS = 5, 9
SATURATED = 4
LINEAR, SQUARES, SQUARED = [1, 2, 5, 6], [3, 7, 8], [0, 2, 3]
# Where more samples than this share lie beyond the turn, the map is kept from turning instead: the
# least certain answers are seldom all alike, and equal values would be cut elsewhere in each fold.
MOST_FLAT = 0.05
# Penalty of a squared slope upwards: so large that none of note is left.
UPWARDS = 1e4


@dataclass(frozen=True, eq=False)
class Scale:
    """Range and standardisation of the inputs, and which stages are used with which scales.

    Attributes
    ----------
    temperature : int
    lower, upper, centre, width : ndarray of float64, shape (4,)
    has_saturated : bool
        Whether saturated samples have a coefficient.
    map_scale, measure_scale : float
        Prior standard deviations of stage 1; a ``measure_scale`` of 0 leaves its terms out.
    falls : bool
        Whether the log-odds must not rise with the inputs.
    effects : tuple of (float, float) or None
        Scales of stages 2 and 3, if they are used.
    """

    temperature: int
    lower: Floats
    upper: Floats
    centre: Floats
    width: Floats
    has_saturated: bool
    map_scale: float = 1.0
    measure_scale: float = 0.0
    falls: bool = False
    effects: tuple[tuple[float, float] | None, ...] = (None, None)


def standard_scale(samples: EventSamples, temperature: int) -> Scale:
    """Return range and standardisation of the inputs at a temperature."""
    inputs = recorded_inputs(samples, temperature)
    saturated = inputs[:, 1] < SATURATED_BELOW
    n_saturated = int(np.count_nonzero(saturated))
    # The range of ordinary samples: saturated ones lie far away, and have their own coefficient.
    ordinary = inputs[~saturated] if n_saturated < len(inputs) else inputs
    lower, upper = ordinary.min(axis=0), ordinary.max(axis=0)
    held = np.clip(inputs, lower, upper)
    centre, width = centre_and_width(held, samples.weights)
    # Not by the width: rounding of the mean can give equal values a tiny one.
    varies = np.ptp(held, axis=0) > 1e-6 * (1.0 + np.abs(held).max(axis=0))
    has_saturated = LEAST_SATURATED <= n_saturated <= len(inputs) - LEAST_SATURATED
    return Scale(temperature, lower, upper, centre, np.where(varies, width, 1.0), has_saturated)


@dataclass(frozen=True, eq=False)
class Problem:
    """Design, offset, hits and counts of stage 1, and the classes of the others.

    Attributes
    ----------
    design : ndarray of float64, shape (n_samples, 9)
    offset, hits, counts : ndarray of float64, shape (n_samples,)
        Each sample counts as often as ``counts`` says: `EventSamples.counts`.
    classes : tuple of two ndarray of int32, shape (n_samples,)
        The predicted class and the second one.
    slopes : ndarray of float64, shape (3, 9)
        Times weights, minus ``steepness``: slopes of the log-odds at the lower end, the centre and
        the upper end of the line on which all inputs rise over their range.
    steepness : float
        Slope downwards of the offset.
    """

    design: Floats
    offset: Floats
    hits: Floats
    counts: Floats
    classes: tuple[NDArray[np.int32], NDArray[np.int32]]
    slopes: Floats
    steepness: float

    @classmethod
    def of(cls, samples: EventSamples, scale: Scale) -> "Problem":
        """Return the problem of some samples."""
        inputs = recorded_inputs(samples, scale.temperature)
        saturated = (inputs[:, 1] < SATURATED_BELOW) & scale.has_saturated
        held = np.clip(inputs, scale.lower, scale.upper)
        z = (held - scale.centre) / scale.width
        design = np.column_stack(
            [np.ones(len(z)), z[:, :2], z[:, 0] ** 2, saturated, z[:, 2:], z[:, 2:] ** 2]
        )
        top = samples.records.top_classes
        run = (scale.upper - scale.lower) / scale.width
        places = np.stack([scale.lower, scale.centre, scale.upper])
        slopes = np.zeros((3, N_WEIGHTS))
        slopes[:, LINEAR] = run
        slopes[:, SQUARES] = (2.0 * run * (places - scale.centre) / scale.width)[:, SQUARED]
        return cls(
            design,
            -held[:, 0],
            samples.hits.astype(np.float64),
            samples.counts,
            (top[:, 0], top[:, 1]),
            slopes,
            float(scale.upper[0] - scale.lower[0]),
        )

    def loss(self, log_odds: Floats) -> float:
        """Return the negative log-likelihood of these log-odds."""
        return float(np.sum(self.counts * (np.logaddexp(0.0, log_odds) - self.hits * log_odds)))

    def without_turn(self, scale: Scale, weights: Floats) -> Scale:
        """Clip the inputs to where the log-odds fall, if they do at the centre."""
        start, centre, end = self.slopes @ weights - self.steepness
        if centre >= 0.0 or min(start, end) >= 0.0:
            return scale
        scale = replace(scale, falls=True)
        if max(start, end) <= 0.0:
            return scale
        turn = scale.lower + start / (start - end) * (scale.upper - scale.lower)
        if start > 0.0:
            return replace(scale, lower=turn)
        is_beyond = self.design[:, 1] > ((turn - scale.centre) / scale.width)[0]
        beyond = mean_over(is_beyond, self.counts)
        return scale if beyond > MOST_FLAT else replace(scale, upper=turn)


def best_scales(
    problem: Problem, scale: Scale, measure_scales: Iterable[float]
) -> tuple[float, Scale]:
    """Return the largest log marginal likelihood over the prior scales, and its scales."""
    tried = []
    weights = np.zeros(N_WEIGHTS)
    for measure_scale in measure_scales:
        for map_scale in MAP_SCALES:
            now = replace(scale, map_scale=map_scale, measure_scale=measure_scale)
            weights, evidence = fit_map(problem, problem.offset, now, weights)
            tried.append((evidence, now))
    return max(tried, key=lambda found: found[0])


def falling_map(
    samples: EventSamples, scale: Scale, problem: Problem | None = None
) -> tuple[Scale, Problem, Floats]:
    """Fit stage 1, clip its inputs where it turns, and fit it again so that it falls.

    ``problem`` is that of the samples and the scale, if it is known already.
    """
    problem = Problem.of(samples, scale) if problem is None else problem
    weights, _ = fit_map(problem, problem.offset, scale)
    falling = problem.without_turn(scale, weights)
    if falling is not scale:
        clips = falling.lower is not scale.lower or falling.upper is not scale.upper
        problem = Problem.of(samples, falling) if clips else problem
        weights, _ = fit_map(problem, problem.offset, falling, weights)
    return falling, problem, weights


def fit_map(
    problem: Problem, offset: Floats, scale: Scale, start: Floats | None = None
) -> tuple[Floats, float]:
    """Return weights that maximise the posterior, and the log marginal likelihood.

    By Newton's method. ``offset`` replaces that of the problem.
    """
    precision = _precision(scale)
    used = np.isfinite(precision)
    design, penalty, slopes = problem.design[:, used], precision[used], problem.slopes[:, used]
    found = np.zeros(len(penalty)) if start is None else start[used]

    def upwards(at: Floats) -> Floats:
        rise: Floats = np.maximum(slopes @ at - problem.steepness, 0.0)
        return rise if scale.falls else np.zeros_like(rise)

    def loss(at: Floats) -> float:
        log_odds, rise = offset + design @ at, upwards(at)
        likelihood = problem.loss(log_odds)
        return float(likelihood + (penalty @ at**2 + UPWARDS * rise @ rise) / 2.0)

    def derivatives(at: Floats) -> tuple[Floats, Floats]:
        probability, rise = expit(offset + design @ at), upwards(at)
        residuals = problem.counts * (probability - problem.hits)
        gradient = design.T @ residuals + penalty * at + UPWARDS * rise @ slopes
        weights = problem.counts * probability * (1.0 - probability)
        curvature = (design * weights[:, np.newaxis]).T @ design + np.diag(penalty)
        rising = slopes[rise > 0.0]
        return gradient, curvature + UPWARDS * rising.T @ rising

    now = loss(found)
    for _ in range(MOST_STEPS):
        gradient, curvature = derivatives(found)
        step = np.linalg.solve(curvature, gradient)
        if gradient @ step < 2.0 * LEAST_GAIN:
            break
        share, then = 1.0, loss(found - step)
        while then > now and share > LEAST_SHARE:
            share /= 2.0
            then = loss(found - share * step)
        if then >= now:
            break
        found, now = found - share * step, then
    volume = np.log(penalty).sum() - np.linalg.slogdet(curvature)[1]
    weights = np.zeros(N_WEIGHTS)
    weights[used] = found
    return weights, float(volume / 2.0 - now)


def _precision(scale: Scale) -> Floats:
    """Return the prior precision of each weight; infinite for terms that are left out."""
    precision = np.full(N_WEIGHTS, scale.map_scale**-2.0)
    # Saturated samples lie beyond the range of the others, where the map says nothing about them.
    precision[[0, SATURATED]] = INTERCEPT_SCALE**-2.0
    precision[N_MAP:] = np.inf if scale.measure_scale == 0.0 else scale.measure_scale**-2.0
    return precision

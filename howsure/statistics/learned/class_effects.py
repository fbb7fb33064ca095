"""Offsets and slopes of classes, with a penalty: their second derivatives are blocks of a class."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from howsure.statistics.arrays import Floats

MOST_STEPS = 20
TOLERANCE = 1e-4


@dataclass(frozen=True, eq=False)
class ClassEffect:
    """A change of the log-odds for each class: ``offset[c] + slope[c] z``.

    Attributes
    ----------
    offset, slope : ndarray of float64, shape (n_classes,)
    evidence : float
        Log marginal likelihood by Laplace's approximation.
    """

    offset: Floats
    slope: Floats
    evidence: float

    def log_odds(self, classes: NDArray[np.integer], z: Floats) -> Floats:
        """Return the change for each sample, shape (n_samples,)."""
        return np.asarray(self.offset[classes] + self.slope[classes] * z)


def fit_class_effect(
    classes: NDArray[np.integer],
    z: Floats,
    log_odds: Floats,
    hits: Floats,
    counts: Floats,
    *,
    n_classes: int,
    scales: tuple[float, float],
) -> ClassEffect:
    """Fit the effects to samples whose log-odds are known up to them, by Newton's method.

    Parameters
    ----------
    classes : ndarray of int, shape (n_samples,)
    z : ndarray of float64, shape (n_samples,)
        The input of the slopes.
    log_odds, hits, counts : ndarray of float64, shape (n_samples,)
        Each sample counts as often as ``counts`` says.
    n_classes : int
    scales : (float, float)
        Prior standard deviations of offsets and slopes; without slopes the second is 0.
    """
    offset, slope = np.zeros((2, n_classes))
    has_slopes = scales[1] > 0.0
    penalty, slope_penalty = scales[0] ** -2.0, scales[1] ** -2.0 if has_slopes else 0.0

    def at(offset: Floats, slope: Floats) -> Floats:
        moved: Floats = log_odds + offset[classes]
        return moved + slope[classes] * z if has_slopes else moved

    def loss(offset: Floats, slope: Floats) -> float:
        moved = at(offset, slope)
        likelihood = float(np.sum(counts * (np.logaddexp(0.0, moved) - hits * moved)))
        penalties = penalty * (offset @ offset) + slope_penalty * (slope @ slope)
        return likelihood + float(penalties) / 2.0

    def by_class(values: Floats) -> Floats:
        return np.asarray(np.bincount(classes, values, n_classes), dtype=np.float64)

    now = loss(offset, slope)
    curvature = np.full(n_classes, penalty)
    for _ in range(MOST_STEPS):
        probability = expit(at(offset, slope))
        residual = counts * (probability - hits)
        weight = counts * probability * (1.0 - probability)
        gradient = by_class(residual) + penalty * offset
        curvature = by_class(weight) + penalty
        step, slope_step = gradient / curvature, np.zeros(n_classes)
        if has_slopes:
            slope_gradient = by_class(residual * z) + slope_penalty * slope
            mixed = by_class(weight * z)
            slope_curvature = by_class(weight * z * z) + slope_penalty
            determinant = curvature * slope_curvature - mixed**2
            step = (slope_curvature * gradient - mixed * slope_gradient) / determinant
            slope_step = (curvature * slope_gradient - mixed * gradient) / determinant
            curvature = determinant
        size, then = 1.0, loss(offset - step, slope - slope_step)
        while then > now and size > TOLERANCE:
            size /= 2.0
            then = loss(offset - size * step, slope - size * slope_step)
        if then >= now:
            break
        offset, slope = offset - size * step, slope - size * slope_step
        gain, now = now - then, then
        if gain < TOLERANCE:
            break
    prior = n_classes * (np.log(penalty) + (np.log(slope_penalty) if has_slopes else 0.0))
    evidence = float((prior - np.log(curvature).sum()) / 2.0) - now
    return ClassEffect(offset, slope, evidence)

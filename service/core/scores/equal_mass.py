"""Calibration error over bins of equal numbers of samples, for any probability on [0, 1]."""

import numpy as np

from service.core.arrays import Counts
from service.core.scores.confidence_order import ConfidenceOrder
from service.core.scores.judged import Judged
from service.core.scores.score import Score

N_BINS = 15


def equal_mass_cuts(order: ConfidenceOrder, n_bins: int) -> Counts:
    """Return cuts after ``i n // n_bins`` samples by falling probability, shape (n_found + 1,).

    A cut inside a block of equal probabilities moves to the block's end, and cuts that meet there
    merge.
    """
    n_samples = len(order.probability)
    inner = np.arange(1, n_bins) * n_samples // n_bins
    kept = order.next_end(inner[inner > 0])
    return np.concatenate([[0], kept[kept < n_samples], [n_samples]])


def equal_mass_ece(judged: Judged) -> float:
    """Return ``sum_i w_i |p_i - q_i|`` over 15 bins of equal mass: Nixon et al. 2019."""
    order = judged.confidence_order
    weights, gaps = order.gaps(equal_mass_cuts(order, N_BINS))
    return float(weights @ gaps)


def debiased_l2(judged: Judged) -> float | None:
    """Return the debiased root mean square gap: Kumar et al. 2019, Definition 5.2.

    From each squared gap of a bin of ``n`` samples the variance of its hit rate ``p``,
    ``p (1 - p) / (n - 1)``, is taken off, by which the square of a difference of means is too
    large on average. A sum below 0 counts as 0. Bins of a single sample are left out; None where
    there are no others.
    """
    order = judged.confidence_order
    cuts = equal_mass_cuts(order, N_BINS)
    counts = np.diff(cuts)
    several = counts > 1
    if not several.any():
        return None
    weights, gaps = order.gaps(cuts)
    counts, weights, gaps = counts[several], weights[several], gaps[several]
    rates = np.diff(order.hits_before[cuts])[several] / counts
    variance = rates * (1.0 - rates) / (counts - 1.0)
    return float(np.sqrt(max(float(weights @ (np.square(gaps) - variance)), 0.0)))


SCORES = (
    Score(
        "ece_equal_mass",
        "sum of w_i |p_i - q_i| over 15 bins of equal numbers of samples; the tied share a bin",
        equal_mass_ece,
        groups_samples=True,
    ),
    Score(
        "l2_debiased",
        "root of the sum of w_i ((p_i - q_i)^2 - p_i (1 - p_i) / (n_i - 1)) over the same bins",
        debiased_l2,
        groups_samples=True,
    ),
)

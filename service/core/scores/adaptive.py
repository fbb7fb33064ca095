"""Calibration error over bins whose width follows the data: adaptive binning."""

import numpy as np

from service.core.arrays import Counts
from service.core.scores.confidence_order import ConfidenceOrder
from service.core.scores.judged import Judged
from service.core.scores.score import Score

Z = 1.645
LEAST_LEFT = 40
LEAST_RANGE_LEFT = 0.05


def adaptive_cuts(order: ConfidenceOrder, *, z: float = Z) -> Counts:
    """Return the cuts of adaptive binning, shape (n_bins + 1,): Ding et al., section 4.2.

    A bin is to hold ``(z / width)^2 / 4`` samples, enough to know its hit rate to within its own
    width. By falling probability, a bin is closed before a sample when it holds more than that,
    more than 40 samples are left and more than 0.05 of range. A last bin short of its number takes
    the missing samples from the others, from each its share. Samples of equal probability stay
    together: a cut inside a block of them moves to the block's end.

    The paper's text has z at 80 %; the authors' tool, and this, at 1.645. Their tool takes from
    every bin by the size of the *last*, which we take for a slip.

    Parameters
    ----------
    order : ConfidenceOrder
        At least one sample.
    z : float
        Half-width of the interval wanted, in standard deviations.
    """
    n_samples = len(order.probability)
    cuts = [0]
    while (end := _close(order, cuts[-1], z)) is not None:
        cuts.append(end)
    counts = np.diff([*cuts, n_samples])
    width = order.probability[cuts[-1]] - order.probability[-1]
    if width > 0.0 and len(counts) > 1:
        # No more than there are: the number for two values next to each other has no bounds.
        missing = min(0.25 * (z / width) ** 2 - counts[-1], float(n_samples))
        if missing > 0.0:
            counts[:-1] -= np.floor(missing * counts[:-1] / n_samples).astype(np.int64)
    inner = np.cumsum(counts[:-1])
    kept = order.next_end(inner[inner > 0])
    return np.concatenate([[0], kept[kept < n_samples], [n_samples]])


def _close(order: ConfidenceOrder, start: int, z: float) -> int | None:
    """Return where the bin that begins at ``start`` ends; None where it is the last."""
    ends = order.ends[np.searchsorted(order.ends, start, side="right") :]
    last = order.probability[ends - 1]
    width = order.probability[start] - last
    enough = np.square(width) * (ends - start) > 0.25 * z * z
    left = len(order.probability) - ends
    closes = enough & (left > LEAST_LEFT) & (last - order.probability[-1] > LEAST_RANGE_LEFT)
    return int(ends[np.argmax(closes)]) if closes.any() else None


def aece(judged: Judged) -> float:
    """Return ``sum_i w_i |p_i - q_i|`` over the adaptive bins."""
    weights, gaps = judged.confidence_order.gaps(adaptive_cuts(judged.confidence_order))
    return float(weights @ gaps)


def amce(judged: Judged) -> float:
    """Return the largest ``|p_i - q_i|`` over the adaptive bins."""
    _, gaps = judged.confidence_order.gaps(adaptive_cuts(judged.confidence_order))
    return float(gaps.max())


SCORES = (
    Score(
        "aece",
        "sum of w_i |p_i - q_i| over adaptive bins, z = 1.645",
        aece,
        groups_samples=True,
    ),
    Score(
        "amce",
        "largest |p_i - q_i| over adaptive bins, z = 1.645",
        amce,
        groups_samples=True,
    ),
)

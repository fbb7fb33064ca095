"""Calibration errors over bins of the table, of equal range, of equal mass, and adaptive bins."""

from dataclasses import replace

import numpy as np

from howsure.statistics.arrays import BinIndex, Counts, Rates
from howsure.statistics.ranking import RankedSamples
from howsure.statistics.scores.predictions import OccupiedBins, Predictions


def weighted_gap(bins: OccupiedBins) -> float:
    """Return ``sum_i w_i |p_i - q_i|``: the hit rate of a bin against its mean probability."""
    return float(bins.weights @ np.abs(bins.hit_rates - bins.probability))


def largest_gap(bins: OccupiedBins) -> float:
    """Return ``max_i |p_i - q_i|`` over bins that hold samples."""
    return float(np.abs(bins.hit_rates - bins.probability).max())


def ece(judged: Predictions) -> float:
    """Return the expected calibration error over the table's bins: Oberman et al., eq. (5)."""
    return weighted_gap(judged.occupied)


def mce(judged: Predictions) -> float:
    """Return the maximum calibration error over the table's bins."""
    return largest_gap(judged.occupied)


def equal_range_bins(probability: Rates, n_bins: int) -> BinIndex:
    """Return the index ``i`` with ``i / n_bins < probability <= (i + 1) / n_bins``.

    Closed on the right, so that a probability of exactly 1 is in the last bin; 0 is in the first.

    Parameters
    ----------
    probability : ndarray of float64, shape (n_samples,)
        In [0, 1].
    n_bins : int
        At least 1.
    """
    edges = np.arange(1, n_bins) / n_bins
    return np.searchsorted(edges, probability, side="left").astype(np.int64, copy=False)


def equal_range_ece(judged: Predictions, n_bins: int) -> float:
    """Return ``sum_i w_i |p_i - q_i|``: Guo et al. 2017, eq. (3)."""
    return weighted_gap(_rebinned(judged, n_bins))


def equal_range_mce(judged: Predictions, n_bins: int) -> float:
    """Return ``max_i |p_i - q_i|`` over bins that hold samples: Guo et al. 2017, eq. (5)."""
    return largest_gap(_rebinned(judged, n_bins))


def _rebinned(judged: Predictions, n_bins: int) -> OccupiedBins:
    return replace(judged, bins=equal_range_bins(judged.probability, n_bins), table=None).occupied


N_BINS = 15


def gaps_between(ranked: RankedSamples, cuts: Counts) -> tuple[Rates, Rates]:
    """Return weight and ``|hit rate - mean probability|`` of the bins between cuts.

    Parameters
    ----------
    ranked : RankedSamples
        By descending probability.
    cuts : ndarray of int64, shape (n_bins + 1,)
        Strictly ascending, from 0 to ``n_samples``.
    """
    counts = np.diff(cuts)
    # Sums of 1 - p, which are exact for probabilities next to 1.
    rest_before = np.concatenate([[0.0], np.cumsum(1.0 + ranked.values)])
    gaps = np.abs(np.diff(ranked.errors_before[cuts]) - np.diff(rest_before[cuts])) / counts
    return counts / ranked.n_samples, gaps


def _block_ends(ranked: RankedSamples, places: Counts) -> Counts:
    """Return the distinct ends of the blocks that contain these places."""
    return np.unique(ranked.ends[ranked.index_of_rank(places)])


def equal_mass_cuts(ranked: RankedSamples, n_bins: int) -> Counts:
    """Return cuts after ``i n // n_bins`` samples by descending probability, shape (n_found + 1,).

    A cut inside a block of equal probabilities moves to the block's end, and cuts that meet there
    merge.
    """
    n_samples = ranked.n_samples
    inner = np.arange(1, n_bins) * n_samples // n_bins
    kept = _block_ends(ranked, inner[inner > 0])
    return np.concatenate([[0], kept[kept < n_samples], [n_samples]])


def equal_mass_ece(judged: Predictions) -> float:
    """Return ``sum_i w_i |p_i - q_i|`` over 15 bins of equal mass: Nixon et al. 2019."""
    ranked = judged.by_confidence
    weights, gaps = gaps_between(ranked, equal_mass_cuts(ranked, N_BINS))
    return float(weights @ gaps)


def debiased_l2(judged: Predictions) -> float | None:
    """Return the debiased root mean square gap: Kumar et al. 2019, Definition 5.2.

    The squared gap of a bin of ``n`` samples is too large on average by the variance of its hit
    rate ``p``, ``p (1 - p) / (n - 1)``, which is therefore subtracted. A negative sum counts as 0.
    Bins of a single sample are left out; the result is None if there are no others.
    """
    ranked = judged.by_confidence
    cuts = equal_mass_cuts(ranked, N_BINS)
    counts = np.diff(cuts)
    several = counts > 1
    if not several.any():
        return None
    weights, gaps = gaps_between(ranked, cuts)
    counts, weights, gaps = counts[several], weights[several], gaps[several]
    rates = (counts - np.diff(ranked.errors_before[cuts])[several]) / counts
    variance = rates * (1.0 - rates) / (counts - 1.0)
    return float(np.sqrt(max(float(weights @ (np.square(gaps) - variance)), 0.0)))


Z = 1.645
LEAST_LEFT = 40
LEAST_RANGE_LEFT = 0.05


def adaptive_cuts(ranked: RankedSamples, *, z: float = Z) -> Counts:
    """Return the cuts of adaptive binning, shape (n_bins + 1,): Ding et al., section 4.2.

    A bin needs ``(z / width)^2 / 4`` samples, so that its hit rate is known to within its own
    width. In descending order of probability, a bin is closed once it has more samples than that
    and more than 40 samples and a range of 0.05 remain. If the last bin has too few samples, it
    takes the missing ones from the others in proportion to their size. A cut inside a block of
    equal probabilities moves to the end of the block.

    In the paper z is that of 80 %; in the authors' tool, and here, it is 1.645. Their tool takes
    samples from every bin in proportion to the *last* bin, which is probably an error.

    Parameters
    ----------
    ranked : RankedSamples
        By descending probability, at least one sample.
    z : float
        Half-width of the interval, in standard deviations.
    """
    n_samples = ranked.n_samples
    cuts = [0]
    while (end := _close(ranked, cuts[-1], z)) is not None:
        cuts.append(end)
    counts = np.diff([*cuts, n_samples])
    width = ranked.values[-1] - ranked.values[cuts[-1]]
    if width > 0.0 and len(counts) > 1:
        # At most n_samples: for two neighbouring values the number is unbounded.
        missing = min(0.25 * (z / width) ** 2 - counts[-1], float(n_samples))
        if missing > 0.0:
            counts[:-1] -= np.floor(missing * counts[:-1] / n_samples).astype(np.int64)
    inner = np.cumsum(counts[:-1])
    kept = _block_ends(ranked, inner[inner > 0])
    return np.concatenate([[0], kept[kept < n_samples], [n_samples]])


def _close(ranked: RankedSamples, start: int, z: float) -> int | None:
    """Return the end of the bin that begins at ``start``; None for the last bin."""
    ends = ranked.ends[np.searchsorted(ranked.ends, start, side="right") :]
    last = ranked.values[ends - 1]
    width = last - ranked.values[start]
    enough = np.square(width) * (ends - start) > 0.25 * z * z
    left = ranked.n_samples - ends
    closes = enough & (left > LEAST_LEFT) & (ranked.values[-1] - last > LEAST_RANGE_LEFT)
    return int(ends[np.argmax(closes)]) if closes.any() else None


def aece(judged: Predictions) -> float:
    """Return ``sum_i w_i |p_i - q_i|`` over the adaptive bins."""
    weights, gaps = gaps_between(judged.by_confidence, adaptive_cuts(judged.by_confidence))
    return float(weights @ gaps)


def amce(judged: Predictions) -> float:
    """Return the largest ``|p_i - q_i|`` over the adaptive bins."""
    _, gaps = gaps_between(judged.by_confidence, adaptive_cuts(judged.by_confidence))
    return float(gaps.max())

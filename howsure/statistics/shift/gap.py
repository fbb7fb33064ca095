"""Test of whether answers are right as often as stated, for sets with weights or groups."""

import numpy as np
from scipy.special import stdtr

from howsure.statistics.arrays import Floats, Hits, Uncertainty
from howsure.statistics.bins.design import SampleDesign
from howsure.statistics.bins.table import BinTable
from howsure.statistics.scores import Predictions


def gap_test(
    table: BinTable, fitted: Uncertainty, hits: Hits, judged: Predictions, *, design: SampleDesign
) -> float:
    """Return the two-sided p-value of the share of hits, if served probabilities hold on the set.

    The weighted mean of hits less probabilities is divided by its standard error and compared with
    Student's distribution (degrees of freedom: Satterthwaite 1946). Its variance has two parts:
    that of the hits of the set, and that of the probabilities, which are rates of the samples that
    the table was fitted on. Each is the variance of sums over groups (Kish 1965, section 6.3), and
    at least that of independent hits with these probabilities, increased as if one group more than
    those with both hits and errors among them had a common fate.

    Parameters
    ----------
    table : BinTable
    fitted, hits : ndarray of float32 and of bool, shape (n_fitted,)
        Uncertainties and hits of the samples that the table was fitted on.
    judged : Predictions
        By the table, of other samples.
    design : SampleDesign
        Weights and groups of the samples of the table.
    """
    weights = judged.weights / judged.weights.sum()
    gap = float(weights @ (judged.hits - judged.probability))
    known = table.look_up(fitted)
    # Each bin counts as much as it does on the set, divided among the samples that gave its rate.
    bins, held = np.asarray(judged.bins, np.int64), np.asarray(known.bin, np.int64)
    own = design.weights(hits.size)
    total = np.bincount(held, own, table.n_bins)
    of_set = np.bincount(bins, weights, table.n_bins)
    total_or_least = np.maximum(total, np.finfo(np.float64).tiny)
    influence = own * (of_set / total_or_least)[held]
    rate = np.bincount(held, own * hits, table.n_bins) / total_or_least
    parts = [
        _variance(weights, judged.hits, judged.probability, judged.design, gap),
        _variance(influence, hits, rate[held], design, 0.0),
    ]
    variance = sum(found for found, _ in parts)
    if variance <= 0.0:
        return 1.0 if gap == 0.0 else 0.0
    freedom = variance**2 / sum(found**2 / max(n - 1, 1) for found, n in parts)
    return float(2.0 * stdtr(freedom, -abs(gap) / np.sqrt(variance)))


def _variance(
    influence: Floats, hits: Hits, probability: Floats, design: SampleDesign, mean: float
) -> tuple[float, int]:
    """Return the variance of the weighted mean of residuals, and the number of its groups."""
    groups = design.groups(hits.size)
    n_groups = int(groups.max()) + 1
    residuals = np.bincount(groups, influence * (hits - probability - mean))
    together = np.square(residuals).sum() * n_groups / max(n_groups - 1, 1)
    square, independent = np.square(influence), probability * (1.0 - probability)
    alone = float(square @ independent)
    of_groups = np.bincount(groups, influence * np.sqrt(independent))
    seen = min(np.unique(groups[rows]).size for rows in (hits, ~hits))
    corrected = alone + (float(np.square(of_groups).sum()) - alone) / (seen + 1.0)
    return max(float(together), corrected), n_groups

"""Scores of a ranking: AUROC, average precision and areas under risk-coverage curves."""

import numpy as np

from howsure.statistics.arrays import Counts, Floats
from howsure.statistics.ranking import RankedSamples
from howsure.statistics.scores.predictions import Predictions


def auroc(hits: Counts | Floats, errors: Counts | Floats) -> float | None:
    """Return the probability that an error is more uncertain than a hit; a tie counts half.

    Parameters
    ----------
    hits, errors : ndarray of int64 or float64, shape (n_blocks,)
        Number or weight of hits and errors in each block of equal uncertainty, most certain
        first.

    Returns
    -------
    float or None
        In [0, 1]; None without a hit or without an error.
    """
    n_hits, n_errors = float(hits.sum()), float(errors.sum())
    if n_hits <= 0.0 or n_errors <= 0.0:
        return None
    more_certain = np.cumsum(hits) - hits
    pairs = errors @ (more_certain + 0.5 * hits)
    return float(pairs / n_hits / n_errors)


def judged_auroc(judged: Predictions) -> float | None:
    """Return the area under the ROC curve of finding errors by uncertainty."""
    return auroc(*judged.by_uncertainty.block_weights)


def aupr(judged: Predictions) -> float | None:
    """Return the average precision, errors as the positive class: Hendrycks & Gimpel 2017.

    It is the mean, over errors, of the share of errors among samples at least as uncertain; samples
    of equal uncertainty are taken together. Points are not joined by lines, which would be
    optimistic (Davis & Goadrich 2006). None without an error. A random ranking scores the error
    rate.
    """
    hits, errors = judged.by_uncertainty.block_weights
    hits, errors = hits[::-1], errors[::-1]
    total = float(errors.sum())
    if total == 0.0:
        return None
    precision = np.cumsum(errors) / np.cumsum(hits + errors)
    return float(errors @ precision / total)


def selective_risks(ranked: RankedSamples) -> Floats:
    """Return the risk among the ``j`` most certain samples, for ``j = 1 … n``.

    Each sample counts as the error rate of its block of equal uncertainty, which is the mean over
    all orders of the tied samples.

    Returns
    -------
    ndarray of float64, shape (n_samples,)
    """
    counts, errors = ranked.block_counts, ranked.block_errors
    accepted = np.arange(1, ranked.n_samples + 1, dtype=np.float64)
    into_block = accepted - np.repeat(ranked.accepted - counts, counts)
    rate = np.repeat(errors / counts, counts)
    errors_before = np.repeat(ranked.errors - errors, counts)
    return np.asarray((errors_before + into_block * rate) / accepted, dtype=np.float64)


def aurc(judged: Predictions) -> float:
    """Return the mean of the ``n`` selective risks: Ding et al., section 4.1."""
    return float(np.mean(selective_risks(judged.by_uncertainty)))


def e_aurc(judged: Predictions) -> float:
    """Return ``aurc`` less that of the ranking with every hit first: Geifman et al. 2019.

    The value of the best ranking is the same sum over ranks, where they use an integral. The result
    is 0 for a ranking with all hits before all errors.
    """
    n_samples, n_hits = judged.n_samples, int(np.count_nonzero(judged.hits))
    accepted = np.arange(n_hits + 1, n_samples + 1, dtype=np.float64)
    oracle = float(np.sum((accepted - n_hits) / accepted)) / n_samples
    return max(aurc(judged) - oracle, 0.0)


def augrc(judged: Predictions) -> float:
    """Return the area under the generalised risk-coverage curve: Traub et al. 2024, eq. (6).

    The curve shows accepted errors, as a share of *all* samples, against coverage, from (0, 0),
    with straight lines across ties. Its area is ``(1 - AUROC) a (1 - a) + (1 - a)^2 / 2``, with
    ``a`` the accuracy.
    """
    hits, errors = judged.by_uncertainty.block_weights
    counts = hits + errors
    before = np.cumsum(errors) - errors
    return float(counts @ (before + errors / 2.0) / counts.sum() / counts.sum())

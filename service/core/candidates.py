"""Choose the number of bins by cross-validation."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from service.core.arrays import Floats

CANDIDATES = (1, 2, 5, 10, 15, 20, 30, 50, 75, 100)
LEAST_SAMPLES_PER_BIN = 25


@dataclass(frozen=True)
class BinCandidate:
    """A number of bins that was tried.

    Attributes
    ----------
    n_bins : int
        Bins asked for.
    nll_mean, nll_std : float or None
        Negative log-likelihood over folds, nats.
    ece : float or None
        Mean expected calibration error over folds. For the reader: nothing is chosen by it.
    """

    n_bins: int
    nll_mean: float | None
    nll_std: float | None
    ece: float | None


def candidate_bins(n_samples: int) -> tuple[int, ...]:
    """Return the numbers of bins that leave 25 samples to a bin; one bin is always allowed."""
    return tuple(
        n_bins
        for n_bins in CANDIDATES
        if n_bins == 1 or n_samples >= LEAST_SAMPLES_PER_BIN * n_bins
    )


def choose_bins(n_bins: Sequence[int], nll: Floats) -> int:
    """Return the fewest bins whose score is not clearly worse than the best.

    That is: whose negative log-likelihood exceeds the least by at most one standard error of the
    paired difference over folds. Expected calibration error would choose a single bin, which has
    none, and on folds of 500 samples is mostly noise.

    Parameters
    ----------
    n_bins : sequence of int
        Ascending.
    nll : ndarray of float64, shape (n_candidates, n_folds)
        ``inf`` where a fold's is; such a candidate is passed over while another is finite.

    Returns
    -------
    int
        The fewest of all without folds to compare by.
    """
    finite = np.flatnonzero(np.isfinite(nll).all(axis=1))
    if nll.shape[1] < 2 or finite.size == 0:  # noqa: PLR2004 -- no standard error
        return n_bins[0]
    best = finite[np.argmin(nll[finite].mean(axis=1))]
    excess = nll[finite] - nll[best]
    error = excess.std(axis=1, ddof=1) / np.sqrt(nll.shape[1])
    fewest = finite[np.argmax(excess.mean(axis=1) <= error)]
    return n_bins[int(fewest)]

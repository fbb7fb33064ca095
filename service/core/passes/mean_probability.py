"""The mean probability of the passes: what an ensemble predicts."""

import numpy as np
from numpy.typing import ArrayLike

from service.core.arrays import Floats
from service.core.passes.log_probabilities import as_log_probabilities, row_blocks


def mean_log_probability(log_probabilities: ArrayLike) -> Floats:
    """Return ``log((1 / M) sum_m p_m)``: Lakshminarayanan et al. 2017, section 2.4.

    In log space, relative to the largest of the passes, so that no probability underflows.

    Parameters
    ----------
    log_probabilities : array_like of float, shape (n_samples, n_passes, n_classes)
        ``log p``; ``-inf`` where ``p`` is 0.

    Returns
    -------
    ndarray of float64, shape (n_samples, n_classes)
        ``-inf`` for a class that every pass rules out.

    Raises
    ------
    ValueError
        If shapes or values break their rules.
    """
    answers = as_log_probabilities(log_probabilities)
    return np.concatenate([_mean(block) for block in row_blocks(answers)])


def _mean(log_p: Floats) -> Floats:
    largest = log_p.max(axis=1)
    is_possible = np.isfinite(largest)
    relative = log_p - np.where(is_possible, largest, 0.0)[:, np.newaxis]
    mean = np.exp(relative).mean(axis=1)
    log_mean: Floats = largest + np.log(np.where(is_possible, mean, 1.0))
    return log_mean

"""How far the answers of the passes lie apart: the 2-norm of their covariance."""

import numpy as np
from numpy.typing import ArrayLike

from service.core.arrays import Floats
from service.core.passes.log_probabilities import as_log_probabilities, row_blocks

LEAST_PASSES = 2


def covariance_norm(log_probabilities: ArrayLike) -> Floats:
    """Return the 2-norm of the sample covariance of the passes: Oberman et al., section 2.2.

    ``||C||_2`` with ``C = sum_m d_m d_m' / (M - 1)``, where ``d_m`` are the deviations of the
    ``M`` passes' probabilities from their mean. The largest eigenvalue is found of the smaller of
    the two Gram matrices, ``M x M`` or ``K x K``, which have it in common.

    No digits are lost where the passes agree, or where they are all but certain: a deviation comes
    from the difference of logarithms, and that of the class that leads is minus the sum of all
    others, since probabilities sum to 1.

    Parameters
    ----------
    log_probabilities : array_like of float, shape (n_samples, n_passes, n_classes)
        ``log p``, at least two passes; ``-inf`` where ``p`` is 0.

    Returns
    -------
    ndarray of float64, shape (n_samples,)
        Never negative; exactly 0 where all passes are the same.

    Raises
    ------
    ValueError
        If shapes or values break their rules.
    """
    answers = as_log_probabilities(log_probabilities)
    if answers.shape[1] < LEAST_PASSES:
        raise ValueError(
            f"log_probabilities must hold at least {LEAST_PASSES} passes, not {answers.shape[1]}"
        )
    return np.concatenate([_norm(_deviations(block)) for block in row_blocks(answers)])


def _deviations(log_p: Floats) -> Floats:
    """Return the deviations from the mean over passes, in the shape of what is given."""
    largest = log_p.max(axis=1, keepdims=True)
    ruled_out = np.isneginf(largest)  # by every pass: no deviation
    change = np.expm1(log_p - np.where(ruled_out, 0.0, largest))  # p / max p - 1
    mean = change.mean(axis=1, keepdims=True)
    leader = (np.exp(largest) * (1.0 + mean)).argmax(axis=2, keepdims=True)
    deviations: Floats = (change - mean) * np.exp(largest)
    np.put_along_axis(deviations, leader, 0.0, axis=2)
    np.put_along_axis(deviations, leader, -deviations.sum(axis=2, keepdims=True), axis=2)
    return deviations


def _norm(deviations: Floats) -> Floats:
    """Return the largest eigenvalue: squares underflow only where it does itself."""
    _, n_passes, n_classes = deviations.shape
    transposed = deviations.swapaxes(1, 2)
    gram = deviations @ transposed if n_passes <= n_classes else transposed @ deviations
    largest = np.linalg.eigvalsh(gram)[:, -1]
    # Rounding may put the eigenvalue of a vanishing matrix below 0.
    return np.where(largest > 0.0, largest / (n_passes - 1), 0.0)

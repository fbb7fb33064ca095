"""The expected odds ratio of a bin table."""

import numpy as np

from service.core.arrays import Rates
from service.core.bins.odds import odds_ratio
from service.core.scores.judged import Judged
from service.core.scores.score import Score
from service.core.scores.weights import check_weights


def expected_odds_ratio(weights: Rates, probability: Rates, accuracy: float) -> float:
    """Return ``sum_i w_i OR(p_i, a)``: Finlay & Oberman, section 4.

    By how much a bin moves the odds of a hit, on average; 1 for bins that say nothing. The
    expected Bayes factor is the same number.

    Parameters
    ----------
    weights : ndarray of float64, shape (n_bins,)
        Not negative, of sum 1.
    probability : ndarray of float64, shape (n_bins,)
        In (0, 1).
    accuracy : float
        In (0, 1).

    Raises
    ------
    ValueError
        If the weights are no distribution, or a probability or the accuracy is out of range.
    """
    check_weights(weights, n_bins=len(probability))
    if not ((probability > 0.0) & (probability < 1.0)).all():
        raise ValueError("probability must lie in (0, 1): odds are finite nowhere else")
    if not 0.0 < accuracy < 1.0:
        raise ValueError(f"accuracy must lie in (0, 1), not {accuracy}")
    return float(weights @ odds_ratio(probability, accuracy))


def eor(judged: Judged) -> float | None:
    """Return the expected odds ratio of the fitted table, by its own weights and accuracy.

    A property of the table, not of the judged samples. None without a table, and where the prior
    is too weak for float64 to tell a probability from 0 or 1.
    """
    table = judged.table
    if table is None or not ((table.probability > 0.0) & (table.probability < 1.0)).all():
        return None
    value = expected_odds_ratio(table.weights, table.probability, table.prior.accuracy)
    return value if np.isfinite(value) else None


SCORES = (
    Score(
        "eor",
        "sum of w_i OR(q_i, a) of the fitted table, its own weights, probabilities and accuracy",
        eor,
        larger_is_better=True,
        needs_bins=True,
    ),
)

"""What is left to learn of the event once the bin is known."""

import numpy as np

from service.core.arrays import Rates
from service.core.scores.judged import Judged
from service.core.scores.nll import binary_entropy
from service.core.scores.score import Score
from service.core.scores.weights import check_weights


def conditional_entropy(weights: Rates, rates: Rates) -> float:
    """Return ``sum_i w_i H2(p_i)`` in bits: Finlay & Oberman, section 4.

    Parameters
    ----------
    weights, rates : ndarray of float64, shape (n_bins,)

    Raises
    ------
    ValueError
        If the weights are no distribution.
    """
    check_weights(weights, n_bins=len(rates))
    return float(weights @ binary_entropy(rates)) / float(np.log(2.0))


def _compute(judged: Judged) -> float:
    return conditional_entropy(judged.occupied.weights, judged.occupied.hit_rates)


SCORES = (
    Score(
        "conditional_entropy",
        "sum of w_i H2(p_i) over the table's bins, bits, w_i and p_i of the judged samples",
        _compute,
        groups_samples=True,
        needs_bins=True,
    ),
)

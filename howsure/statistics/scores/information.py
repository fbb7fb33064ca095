"""The expected odds ratio and the conditional entropy of a bin table."""

import numpy as np

from howsure.statistics.arrays import Rates
from howsure.statistics.bins.prior import odds_ratio
from howsure.statistics.scores.predictions import Predictions
from howsure.statistics.scores.proper import binary_entropy


def expected_odds_ratio(weights: Rates, probability: Rates, accuracy: float) -> float:
    """Return ``sum_i w_i OR(p_i, a)``: Finlay & Oberman, section 4.

    This is the average factor by which a bin changes the odds of a hit; 1 for uninformative bins.
    It equals the expected Bayes factor. Probabilities and accuracy lie in (0, 1).
    """
    return float(weights @ odds_ratio(probability, accuracy))


def eor(judged: Predictions) -> float | None:
    """Return the expected odds ratio of the fitted table, by its own weights and accuracy.

    It is a property of the table, not of the evaluated samples. None without a table, and if a weak
    prior lets a probability round to 0 or 1.
    """
    table = judged.table
    if table is None or not ((table.probability > 0.0) & (table.probability < 1.0)).all():
        return None
    value = expected_odds_ratio(table.weights, table.probability, table.prior.accuracy)
    return value if np.isfinite(value) else None


def conditional_entropy(judged: Predictions) -> float:
    """Return ``sum_i w_i H2(p_i)`` in bits: Finlay & Oberman, section 4.

    Over the table's bins, with ``w_i`` and ``p_i`` the weights and hit rates of the evaluated
    samples.
    """
    bins = judged.occupied
    return float(bins.weights @ binary_entropy(bins.hit_rates)) / float(np.log(2.0))

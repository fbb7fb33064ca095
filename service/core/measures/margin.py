"""One minus the lead of the top class over the second."""

import numpy as np

from service.core.arrays import Floats
from service.core.measures.measure import Measure
from service.core.ranked import RankedScores


def margin(ranked: RankedScores, _k: int) -> Floats:
    """Return ``1 - (p_(1) - p_(2))``, from tails: ``(1 - p_(1)) + p_(2)``.

    Parameters
    ----------
    ranked : RankedScores

    Returns
    -------
    ndarray of float64, shape (n_samples,)
        From 0 to 1.
    """
    # From the weights: as a difference of tails it would cancel where it is small beside the rest.
    second = np.take_along_axis(ranked.weights, ranked.top_classes[:, 1:2], axis=1)[:, 0]
    return (ranked.tails[:, 0] + second) / ranked.total


MEASURE = Measure("margin", margin)

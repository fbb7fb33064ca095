"""Whether uncertainties of two sets come of one distribution: no label is needed."""

from dataclasses import dataclass

import numpy as np
from scipy.special import kolmogorov

from service.core.arrays import Uncertainty
from service.core.cut_points import merge_underflow
from service.core.plain_data import PlainData
from service.core.scores.auroc import auroc
from service.core.scores.tied_blocks import tied_blocks


@dataclass(frozen=True)
class PopulationShift(PlainData):
    """The uncertainties of a set against those of the calibration set.

    Attributes
    ----------
    distance : float
        Largest difference of the two empirical distribution functions.
    p_value : float
        Of the two-sample Kolmogorov-Smirnov test; never too small for equal values.
    auroc : float
        Chance that a sample of the set is less certain than one of the calibration set, a tie
        counting half: 1/2 where nothing tells them apart.
    """

    distance: float
    p_value: float
    auroc: float


def population_shift(further: Uncertainty, calibration: Uncertainty) -> PopulationShift:
    """Compare the uncertainties of two sets.

    The p-value is the limit for large sets, ``Q(sqrt(n m / (n + m)) D)``. For small sets and for
    ties the small ones, which decide, are if anything too large.

    Parameters
    ----------
    further, calibration : ndarray of float32, shape (n_samples,)
        Free of NaN, at least one each.

    Raises
    ------
    ValueError
        If a set is empty.
    """
    if further.size == 0 or calibration.size == 0:
        raise ValueError("further and calibration must hold at least one sample each")
    is_further = np.repeat([True, False], [further.size, calibration.size])
    values = merge_underflow(np.concatenate([further, calibration]))
    blocks = tied_blocks(values, ~is_further)
    ours, theirs = blocks.errors, blocks.counts - blocks.errors
    steps = np.cumsum(ours) / further.size - np.cumsum(theirs) / calibration.size
    distance = float(np.abs(steps).max())
    effective = further.size * calibration.size / (further.size + calibration.size)
    return PopulationShift(
        distance=distance,
        p_value=float(kolmogorov(np.sqrt(effective) * distance)),
        auroc=auroc(theirs, ours) or 0.0,  # never None: both sets hold samples
    )

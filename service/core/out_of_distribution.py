"""Thresholds beyond which an uncertainty is unlike those of the calibration set."""

from collections.abc import Sequence

import numpy as np

from service.core.arrays import Uncertainty
from service.core.cut_points import cut_points

OOD_LEVELS = (0.9, 0.95, 0.99)


def ood_thresholds(
    uncertainty: Uncertainty, levels: Sequence[float] = OOD_LEVELS
) -> dict[float, float]:
    """Return ``a`` with ``P(U <= a) = level`` over the calibration set, for each level.

    What lies above, ``U > a``, is flagged. The smallest cut that keeps at least ``level`` of the
    samples: after the ``ceil(level n)``-th value and all that equal it, half-way to the next
    value; the greatest value where none is greater.

    Parameters
    ----------
    uncertainty : ndarray of float32, shape (n_samples,)
        Finite, at least one.
    levels : sequence of float
        In (0, 1).

    Returns
    -------
    dict of float to float
        Thresholds by level, in the order of ``levels``; exact in float32.

    Raises
    ------
    ValueError
        If there is no sample, a value is not finite or a level is out of range.
    """
    if not all(0.0 < level < 1.0 for level in levels):
        raise ValueError(f"levels must lie in (0, 1), not {tuple(levels)}")
    points = cut_points(uncertainty, np.zeros(np.shape(uncertainty), dtype=np.bool_))
    # .7 of 10 samples is the 7th value, though .7 * 10 is 7.000000000000001 or so in float64.
    ranks = np.ceil(np.asarray(levels, dtype=np.float64) * points.n_samples * (1.0 - 1e-12))
    found = points.thresholds[points.holding(ranks)]
    return {level: float(value) for level, value in zip(levels, found, strict=True)}

"""The mass of the top classes on the scales that calibrators regress on."""

import numpy as np

from service.core.arrays import Floats
from service.core.bins.edges import UNDERFLOW
from service.core.measures import column
from service.core.records import Records


def neg_log_mass(records: Records, k: int) -> Floats:
    """Return ``U_k = -log s``, ``s`` the mass of the ``k`` top classes, as float64.

    Values below float32's normal range count as equal, as they do in the edges of bins: their
    logarithms are finite then.
    """
    values = records.uncertainty[column("neg_log_topk_mass", k)].astype(np.float64)
    return np.maximum(values, float(UNDERFLOW))


def log_rest(records: Records, k: int) -> Floats:
    """Return ``log(1 - s)``, without loss for ``s`` next to 1."""
    return np.log(-np.expm1(-neg_log_mass(records, k)))


def log_odds(records: Records, k: int) -> Floats:
    """Return ``log(s / (1 - s)) = -log(expm1(U_k))``, from -85 to 85 or so."""
    return -np.log(np.expm1(neg_log_mass(records, k)))

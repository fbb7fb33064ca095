"""Two sets of samples counted on one fixed grid."""

from dataclasses import dataclass

import numpy as np

from service.core.arrays import Floats, Uncertainty
from service.core.plain_data import PlainData

N_CELLS = 20


@dataclass(frozen=True)
class Histogram(PlainData):
    """Counts over cells of equal width, closed on the right; the first holds its lower end, too.

    Attributes
    ----------
    edges : tuple of float
        One more than there are cells.
    counts, calibration_counts : tuple of int
        Of the set, and of the calibration set.
    """

    edges: tuple[float, ...]
    counts: tuple[int, ...]
    calibration_counts: tuple[int, ...]


def fit_histogram(
    values: Floats | Uncertainty, calibration: Floats | Uncertainty, *, largest: float
) -> Histogram:
    """Count values on 20 cells from 0 to ``largest``.

    A value that rounding has put outside is counted in the outer cell.

    Parameters
    ----------
    values, calibration : ndarray, shape (n_samples,)
        Free of NaN.
    largest : float
        Above 0.
    """
    edges = np.arange(N_CELLS + 1) * (largest / N_CELLS)

    def counts(sample: Floats | Uncertainty) -> tuple[int, ...]:
        cells = np.searchsorted(edges[1:-1], sample.astype(np.float64), side="left")
        return tuple(np.bincount(cells, minlength=N_CELLS).tolist())

    return Histogram(tuple(edges.tolist()), counts(values), counts(calibration))

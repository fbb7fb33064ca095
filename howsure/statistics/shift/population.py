"""Compare the distributions of two sets: histograms on one grid, and a rank test."""

from dataclasses import dataclass

import numpy as np
from scipy.special import kolmogorov

from howsure.statistics.arrays import Floats, Uncertainty
from howsure.statistics.bins.design import ALIKE, SampleDesign
from howsure.statistics.effective import effective_size
from howsure.statistics.ranking import merge_underflow
from howsure.statistics.scores.ranking import auroc

N_CELLS = 20


@dataclass(frozen=True)
class Histogram:
    """Counts in cells of equal width, closed on the right; the first includes its lower end.

    Attributes
    ----------
    edges : tuple of float
        One more than the number of cells.
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

    Values outside by rounding are counted in the outer cell.

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


@dataclass(frozen=True)
class PopulationShift:
    """The uncertainties of a set against those of the calibration set.

    Attributes
    ----------
    distance : float
        Largest difference of the two empirical distribution functions.
    p_value : float
        Of the two-sample Kolmogorov-Smirnov test; conservative for ties.
    auroc : float
        Probability that a sample of the set is more uncertain than one of the calibration set, a
        tie counting half: 1/2 for equal distributions.
    """

    distance: float
    p_value: float
    auroc: float


def population_shift(
    further: Uncertainty,
    calibration: Uncertainty,
    *,
    design: SampleDesign = ALIKE,
    calibration_design: SampleDesign = ALIKE,
) -> PopulationShift:
    """Compare the uncertainties of two sets, by weight.

    The p-value is the limit for large sets, ``Q(sqrt(n m / (n + m)) D)``, where n and m are
    effective samples (`effective_size`). For small sets, ties and groups, small p-values are
    conservative.

    Parameters
    ----------
    further, calibration : ndarray of float32, shape (n_samples,)
        Free of NaN, at least one each.
    design, calibration_design : SampleDesign
        Weights and groups of the two sets.
    """
    values = merge_underflow(np.concatenate([further, calibration]))
    order = np.argsort(values, kind="stable")
    ranked = values[order]
    ends = np.append(np.flatnonzero(ranked[1:] != ranked[:-1]), order.size - 1)
    weights = np.zeros((2, order.size))
    weights[0, : further.size] = design.weights(further.size)
    weights[1, further.size :] = calibration_design.weights(calibration.size)
    ours, theirs = np.cumsum(weights[:, order], axis=1)[:, ends]
    distance = float(np.abs(ours / ours[-1] - theirs / theirs[-1]).max())
    # Equal values have one rank, the number of samples up to them.
    ranks = np.empty(order.size)
    ranks[order] = np.repeat(ends + 1.0, np.diff(ends, prepend=-1))
    n = effective_size(ranks[: further.size], design)
    m = effective_size(ranks[further.size :], calibration_design)
    return PopulationShift(
        distance=distance,
        p_value=float(kolmogorov(np.sqrt(n * m / (n + m)) * distance)),
        # Never None: both sets hold samples.
        auroc=auroc(np.diff(theirs, prepend=0.0), np.diff(ours, prepend=0.0)) or 0.0,
    )

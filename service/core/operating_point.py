"""What a threshold on the uncertainty would have done to labelled samples."""

from dataclasses import dataclass

import numpy as np

from service.core.arrays import Hits, Uncertainty, as_hits, as_uncertainty
from service.core.cut_points import cut_points
from service.core.intervals.proportion import proportion_interval
from service.core.plain_data import PlainData

ShareInterval = tuple[float, float]


@dataclass(frozen=True)
class Consequences(PlainData):
    """What a threshold accepts of labelled samples, and how often that is wrong.

    Attributes
    ----------
    n_samples, n_accepted, n_errors : int
        All samples, those of ``U <= threshold``, and those of them without a hit.
    coverage, risk : float
        Share that is accepted, and the error rate among that; the risk of nothing is None.
    coverage_interval, risk_interval : tuple of float
        Exact binomial ones (Clopper & Pearson 1934) at the level; of a threshold that was chosen by
        looking at the same samples they are optimistic, which `fit_selective` is not.
    """

    n_samples: int
    n_accepted: int
    n_errors: int
    coverage: float
    coverage_interval: ShareInterval
    risk: float | None
    risk_interval: ShareInterval | None


def consequences(
    uncertainty: Uncertainty, hits: Hits, threshold: float, *, level: float
) -> Consequences:
    """Return what accepting ``U <= threshold`` does to labelled samples.

    Parameters
    ----------
    uncertainty : ndarray of float32, shape (n_samples,)
        Finite, at least one.
    hits : ndarray of bool, shape (n_samples,)
    threshold : float
        Compared as float32, as it is in service.
    level : float
        Of the intervals, in (0, 1).

    Raises
    ------
    ValueError
        If shapes differ, there is no sample, or a value is not finite.
    """
    values = as_uncertainty(uncertainty)
    hits = as_hits(hits, n_samples=values.size)
    if values.size == 0:
        raise ValueError("uncertainty must hold at least one sample")
    if not np.isfinite(threshold):
        raise ValueError(f"threshold must be finite, not {threshold}")
    accepted = values <= np.float32(threshold)
    n_accepted = int(np.count_nonzero(accepted))
    n_errors = int(np.count_nonzero(accepted & ~hits))
    return Consequences(
        n_samples=values.size,
        n_accepted=n_accepted,
        n_errors=n_errors,
        coverage=n_accepted / values.size,
        coverage_interval=proportion_interval(n_accepted, values.size, level),
        risk=n_errors / n_accepted if n_accepted else None,
        risk_interval=proportion_interval(n_errors, n_accepted, level) if n_accepted else None,
    )


def threshold_of_coverage(uncertainty: Uncertainty, hits: Hits, coverage: float) -> float:
    """Return the smallest threshold that accepts at least this share of the samples.

    Samples of equal uncertainty are accepted together: it may accept more.

    Raises
    ------
    ValueError
        If ``coverage`` is not in (0, 1], or as for `cut_points`.
    """
    if not 0.0 < coverage <= 1.0:
        raise ValueError(f"coverage must lie in (0, 1], not {coverage}")
    points = cut_points(uncertainty, hits)
    # A share such as 0.7 of 10 is not quite 7 in binary.
    rank = np.ceil(np.round(coverage * points.n_samples, 6))
    return float(points.thresholds[points.holding(np.array([max(rank, 1.0)]))[0]])

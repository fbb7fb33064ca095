"""How surely the errors among accepted samples tell their risk."""

from dataclasses import dataclass

from service.core.arrays import Counts, Rates
from service.core.bins.prior import BetaPrior
from service.core.cut_points import CutPoints
from service.core.intervals import BinomialSample
from service.core.intervals.clopper_pearson import clopper_pearson
from service.core.plain_data import PlainData
from service.core.thinned import thinned


@dataclass(frozen=True, eq=False)
class RiskBand(PlainData):
    """The exact interval of the risk at each point of the risk-coverage curve, by itself.

    Not one for a threshold that was chosen by looking at the curve: that is what the tests of
    `service.core.selective` are for.

    Attributes
    ----------
    level : float
    accepted, errors : ndarray of int64, shape (n_points,)
        Samples at or below the threshold, and those of them without a hit.
    lower, upper : ndarray of float64, shape (n_points,)
    """

    level: float
    accepted: Counts
    errors: Counts
    lower: Rates
    upper: Rates


def risk_band(points: CutPoints, *, level: float) -> RiskBand:
    """Return the band at the points that a risk-coverage curve keeps when it is thinned."""
    kept = thinned(points.coverage)
    accepted, errors = points.accepted[kept], points.errors[kept]
    sample = BinomialSample(errors, accepted, BetaPrior(0.5, 1.0))
    lower, upper = clopper_pearson(sample, level)
    return RiskBand(level, accepted, errors, lower, upper)

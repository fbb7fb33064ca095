"""The risk-coverage curve."""

from dataclasses import dataclass

from service.core.arrays import Edges, Rates
from service.core.cut_points import CutPoints
from service.core.plain_data import PlainData
from service.core.thinned import thinned


@dataclass(frozen=True, eq=False)
class RiskCoverageCurve(PlainData):
    """Error rate among the samples of ``U <= threshold``, for every threshold.

    Attributes
    ----------
    threshold : ndarray of float32, shape (n_points,)
        Ascending.
    coverage : ndarray of float64, shape (n_points,)
        Share of the samples that is accepted, ascending to 1.
    risk : ndarray of float64, shape (n_points,)
        Error rate among those; at coverage 1, that of all.
    """

    threshold: Edges
    coverage: Rates
    risk: Rates

    def thin(self) -> "RiskCoverageCurve":
        """Return at most 200 of the points, evenly far along the coverage, the ends among them."""
        kept = thinned(self.coverage)
        return RiskCoverageCurve(self.threshold[kept], self.coverage[kept], self.risk[kept])


def risk_coverage_curve(points: CutPoints) -> RiskCoverageCurve:
    """Return the curve of ranking by ``-U``: Ding et al., section 4.1.

    Samples of equal uncertainty are accepted together and make one point: the curve has no point
    that a threshold cannot reach.
    """
    return RiskCoverageCurve(points.thresholds, points.coverage, points.risk)

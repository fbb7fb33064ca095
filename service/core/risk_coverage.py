"""The risk-coverage curve."""

from dataclasses import dataclass
from typing import Any

from service.core.arrays import Edges, Rates
from service.core.cut_points import CutPoints
from service.core.thinned import thinned


@dataclass(frozen=True, eq=False)
class RiskCoverageCurve:
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

    def as_dict(self) -> dict[str, Any]:
        """Return at most 200 of the points, the ends among them, as plain lists."""
        kept = thinned(len(self.threshold))
        return {
            "threshold": self.threshold[kept].tolist(),
            "coverage": self.coverage[kept].tolist(),
            "risk": self.risk[kept].tolist(),
        }


def risk_coverage_curve(points: CutPoints) -> RiskCoverageCurve:
    """Return the curve of ranking by ``-U``: Ding et al., section 4.1.

    Samples of equal uncertainty are accepted together and make one point: the curve has no point
    that a threshold cannot reach.
    """
    return RiskCoverageCurve(points.thresholds, points.coverage, points.risk)

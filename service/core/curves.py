"""The curves of one uncertainty measure and one event."""

from dataclasses import dataclass

from service.core.arrays import Hits, Uncertainty
from service.core.cut_points import cut_points
from service.core.plain_data import PlainData
from service.core.precision_recall import PrecisionRecallCurve, precision_recall_curve
from service.core.risk_band import RiskBand, risk_band
from service.core.risk_coverage import RiskCoverageCurve, risk_coverage_curve
from service.core.roc import RocCurve, roc_curve


@dataclass(frozen=True, eq=False)
class Curves(PlainData):
    """How well an uncertainty ranks samples.

    Attributes
    ----------
    risk_coverage : RiskCoverageCurve
    risk_band : RiskBand
        At each of its points.
    roc : RocCurve or None
        None without a hit or without an error.
    precision_recall : PrecisionRecallCurve or None
        None without an error.
    """

    risk_coverage: RiskCoverageCurve
    risk_band: RiskBand
    roc: RocCurve | None
    precision_recall: PrecisionRecallCurve | None


def fit_curves(uncertainty: Uncertainty, hits: Hits, *, level: float = 0.95) -> Curves:
    """Return the curves of ranking samples by uncertainty, at most 200 points of each.

    A point for every sample, of every measure and event, would outweigh the records themselves.

    Parameters
    ----------
    uncertainty : ndarray of float32, shape (n_samples,)
        Finite, at least one.
    hits : ndarray of bool, shape (n_samples,)
    level : float
        Of the band around the risk.

    Raises
    ------
    ValueError
        If there is no sample, shapes differ or a value is not finite.
    """
    points = cut_points(uncertainty, hits)
    roc, precision_recall = roc_curve(points), precision_recall_curve(points)
    return Curves(
        risk_coverage=risk_coverage_curve(points).thin(),
        risk_band=risk_band(points, level=level),
        roc=None if roc is None else roc.thin(),
        precision_recall=None if precision_recall is None else precision_recall.thin(),
    )

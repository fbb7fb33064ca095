"""The curves of one uncertainty measure and one event."""

from dataclasses import dataclass, fields, replace
from typing import TypeVar

import numpy as np

from howsure.statistics.arrays import Counts, Edges, Rates
from howsure.statistics.bins.intervals import clopper_pearson
from howsure.statistics.ranking import RankedSamples, downsample


@dataclass(frozen=True, eq=False)
class RocCurve:
    """The ROC curve of flagging ``U > threshold``; errors are the positives.

    Attributes
    ----------
    threshold : ndarray of float64, shape (n_points,)
        Descending; the last is ``-inf`` and flags all samples.
    false_positive_rate : ndarray of float64, shape (n_points,)
        Flagged share of the hits, from 0 to 1.
    true_positive_rate : ndarray of float64, shape (n_points,)
        Flagged share of the errors, from 0 to 1.
    """

    threshold: Rates
    false_positive_rate: Rates
    true_positive_rate: Rates


def roc_curve(ranked: RankedSamples) -> RocCurve | None:
    """Return the curve, or None without a hit or without an error.

    The curve runs from (0, 0), where nothing is flagged, to (1, 1). Equal values are flagged
    together, so the area under straight lines between the points counts a tie half.
    """
    if ranked.n_errors in (0, ranked.n_samples):
        return None
    kept_hits, kept_errors = (np.append(0, np.cumsum(w))[::-1] for w in ranked.block_weights)
    n_hits, n_errors = kept_hits[0], kept_errors[0]
    return RocCurve(
        threshold=np.append(ranked.thresholds[::-1].astype(np.float64), -np.inf),
        false_positive_rate=(n_hits - kept_hits) / n_hits,
        true_positive_rate=(n_errors - kept_errors) / n_errors,
    )


@dataclass(frozen=True, eq=False)
class PrecisionRecallCurve:
    """The precision-recall curve of flagging ``U > threshold``; errors are the positives.

    Attributes
    ----------
    threshold : ndarray of float64, shape (n_points,)
        Descending; the last is ``-inf`` and flags all samples.
    precision : ndarray of float64, shape (n_points,)
        Share of errors among flagged samples; the last is the error rate of all samples.
    recall : ndarray of float64, shape (n_points,)
        Flagged share of the errors, ascending to 1.
    """

    threshold: Rates
    precision: Rates
    recall: Rates


def precision_recall_curve(ranked: RankedSamples) -> PrecisionRecallCurve | None:
    """Return the curve, or None without an error.

    The curve has no point where nothing is flagged, because precision is undefined there; it starts
    at the samples of greatest uncertainty. scikit-learn adds a point of precision 1.
    """
    if ranked.n_errors == 0:
        return None
    hits, found = (np.cumsum(weights[::-1]) for weights in ranked.block_weights)
    return PrecisionRecallCurve(
        threshold=np.append(ranked.thresholds[-2::-1].astype(np.float64), -np.inf),
        precision=np.asarray(found / (hits + found), dtype=np.float64),
        recall=found / found[-1],
    )


@dataclass(frozen=True, eq=False)
class RiskBand:
    """The exact interval of the risk at each single point of the risk-coverage curve.

    It is not valid for a threshold chosen by looking at the curve; use
    `howsure.statistics.selective` for that.

    Attributes
    ----------
    level : float
    accepted, errors : ndarray of int64, shape (n_points,)
        Samples at or below the threshold, and errors among them.
    lower, upper : ndarray of float64, shape (n_points,)
    """

    level: float
    accepted: Counts
    errors: Counts
    lower: Rates
    upper: Rates


def risk_band(ranked: RankedSamples, *, level: float) -> RiskBand:
    """Return the band at the points that a risk-coverage curve keeps when it is downsampled."""
    kept = downsample(ranked.coverage)
    accepted, errors = ranked.accepted[kept], ranked.errors[kept]
    rates, worth = ranked.error_rates(accepted, (1.0 - level) / 2.0)
    lower, upper = clopper_pearson(rates * worth, worth, level)
    return RiskBand(level, accepted, errors, lower, upper)


@dataclass(frozen=True, eq=False)
class RiskCoverageCurve:
    """Error rate among the samples of ``U <= threshold``, for every threshold.

    Attributes
    ----------
    threshold : ndarray of float32, shape (n_points,)
        Ascending.
    coverage : ndarray of float64, shape (n_points,)
        Accepted share of the samples, ascending to 1.
    risk : ndarray of float64, shape (n_points,)
        Error rate among accepted samples.
    """

    threshold: Edges
    coverage: Rates
    risk: Rates


def risk_coverage_curve(ranked: RankedSamples) -> RiskCoverageCurve:
    """Return the curve of ranking by ``-U``: Ding et al., section 4.1.

    Samples of equal uncertainty are accepted together and make one point, so a threshold exists for
    every point.
    """
    return RiskCoverageCurve(ranked.thresholds, ranked.coverage, ranked.risk)


Curve = TypeVar("Curve", RiskCoverageCurve, RocCurve, PrecisionRecallCurve)


@dataclass(frozen=True, eq=False)
class Curves:
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


def fit_curves(ranked: RankedSamples, *, level: float = 0.95) -> Curves:
    """Return the curves of ranking samples by uncertainty, with at most 200 points each.

    Curves with a point per sample would need more space than the records.

    Parameters
    ----------
    ranked : RankedSamples
    level : float
        Of the band around the risk.
    """
    roc, precision_recall = roc_curve(ranked), precision_recall_curve(ranked)
    return Curves(
        risk_coverage=_downsample(risk_coverage_curve(ranked), ranked.coverage),
        risk_band=risk_band(ranked, level=level),
        # Evenly spaced along the sum of both axes.
        roc=roc and _downsample(roc, roc.false_positive_rate + roc.true_positive_rate),
        precision_recall=precision_recall
        and _downsample(precision_recall, precision_recall.recall),
    )


def _downsample(curve: Curve, progress: Rates) -> Curve:
    """Return at most 200 of the points, evenly spaced, including both ends."""
    kept = downsample(progress)
    return replace(curve, **{f.name: getattr(curve, f.name)[kept] for f in fields(curve)})

"""The fit of a smooth curve through hits."""

import numpy as np
import scipy  # its parts are imported when first used

from howsure.statistics.arrays import Counts, Floats, Hits, Rates, Uncertainty
from howsure.statistics.bins.curve import MAX_KNOTS, Curve
from howsure.statistics.bins.edges import UNDERFLOW
from howsure.statistics.bins.intervals import IntervalOptions, binomial_interval
from howsure.statistics.bins.prior import BetaPrior, posterior_mean
from howsure.statistics.calibrators.spline import SplineFit, fit_spline
from howsure.statistics.measures import LEARNED

KNOTS_BY_RANK = 65
KNOTS_BY_VALUE = MAX_KNOTS - KNOTS_BY_RANK
# Measures whose x, as in `certainty`, is an estimate of the log-odds of a hit.
LOG_ODDS = (LEARNED, "neg_log_pmax", "neg_log_topk_mass")
SATURATED = 85.0
# Fewer misses or hits do not tell how far a log-odds is off: it is served as it is.
FEW_EVENTS = 12.0
TAIL = 25  # samples, or an eighth of a small set


def certainty(uncertainty: Uncertainty, measure: str, least: float) -> Floats:
    """Return ``x``, which falls as the uncertainty rises, float64 of shape (n_samples,).

    For ``-log`` of a mass it is the log-odds of the mass; ``learned`` is a negative log-odds
    already. Other measures are transformed alike if the ``least`` value of the whole set is
    positive, and otherwise by normal scores of their ranks. Samples that leave no mass to others in
    float32 are one unit above the next ones: their own log-odds, about 85, would say only how small
    a float32 can be.
    """
    values = uncertainty.astype(np.float64)
    if measure == LEARNED:
        return -values
    if least >= 0.0:
        values = np.maximum(values, float(UNDERFLOW))
        # -log(e^v - 1), written so that it does not overflow.
        x = np.asarray(-values - np.log(-np.expm1(-values)))
        saturated = x > SATURATED
        if saturated.any() and not saturated.all():
            x[saturated] = x[~saturated].max() + 1.0
        return x
    ranks = scipy.stats.rankdata(-values)
    return np.asarray(scipy.special.ndtri((ranks - 0.5) / len(ranks)))


def fit_curve(
    uncertainty: Uncertainty,
    hits: Hits,
    *,
    measure: str,
    prior: BetaPrior,
    interval: IntervalOptions,
    monotone: bool = False,
    weights: Floats,
    least: float,
) -> Curve:
    """Fit the curve: see `howsure.statistics.calibrators.spline`.

    If the event always or never happens, the curve is one point, the regularised rate of all
    samples with their binomial interval.

    Parameters
    ----------
    uncertainty : ndarray of float32, shape (n_samples,)
    hits : ndarray of bool, shape (n_samples,)
    measure : str
        Its name decides the scale: see `certainty`.
    prior : BetaPrior
    interval : IntervalOptions
        Its method is that of the counts beside which the curve's own interval is never narrower; a
        simultaneous level is divided by the number of knots.
    monotone : bool
        Whether the probability must not rise with the uncertainty.
    weights : ndarray of float64, shape (n_samples,)
        How many samples each one counts for.
    least : float
        The least uncertainty in the whole set, of which these samples are a part: see `certainty`.
    """
    order = np.argsort(uncertainty, kind="stable")
    values, hits, weights = uncertainty[order], hits[order], weights[order]
    if prior.degenerate or values[0] == values[-1]:
        return _constant(values, hits, weights, prior, interval)
    x = certainty(values, measure, least)
    places = _knots(values, x)
    found = fit_spline(x[::-1], hits[::-1], weights[::-1], prior=measure in LOG_ODDS)
    at = x[places]
    probability = found.probability(at)
    if measure == LEARNED and min(weights @ hits, weights @ ~hits) < FEW_EVENTS:
        least = 0.5 / weights.sum()
        probability = np.clip(scipy.special.expit(at), least, 1.0 - least)
    lower, upper = _interval(found, x, places, interval.level_of_each(len(at)))
    proven = _proven(values, hits, weights, places, prior, interval)
    lower, upper = np.minimum(lower, proven[0]), np.maximum(upper, proven[1])
    if monotone:
        counts = np.diff(np.append(places, len(values)))
        probability, lower, upper = (_falling(v, counts) for v in (probability, lower, upper))
    return Curve(
        uncertainty=values[places].astype(np.float64),
        probability=probability,
        lower=np.minimum(lower, probability),
        upper=np.maximum(upper, probability),
    )


def _interval(found: SplineFit, x: Floats, places: Counts, level: float) -> tuple[Rates, Rates]:
    """Return the interval at some samples; ``x`` falls.

    The samples in either tail are taken to be right at least as often, or at most, as the one where
    the tail begins. By themselves the outer ones say little: their interval is nearly 0 to 1.
    """
    last = len(x) - 1
    tail = min(TAIL, len(x) // 8)
    lower, upper = found.interval(x[places], level)
    least, most = found.interval(x[[tail, last - tail]], level)
    lower = np.where(places < tail, np.maximum(lower, least[0]), lower)
    return lower, np.where(places > last - tail, np.minimum(upper, most[1]), upper)


def _proven(
    values: Uncertainty,
    hits: Hits,
    weights: Floats,
    places: Counts,
    prior: BetaPrior,
    interval: IntervalOptions,
) -> tuple[Rates, Rates]:
    """Return what counts prove at some samples: the best ends of intervals of their neighbours.

    These are 25 samples, 51, 103 and so on, as many on either side as there are. A part of samples
    of equal uncertainty has its share of their hits. The curve's own interval shrinks to its prior
    where hits, or misses, are rare; counts do not.
    """
    firsts = np.flatnonzero(np.diff(values, prepend=-np.inf))
    total, n_hits = (
        np.append(0.0, np.cumsum(np.add.reduceat(each, firsts)))
        for each in (weights, weights * hits)
    )
    of_value = np.searchsorted(values[firsts], values[places])
    middle = (total[of_value] + total[of_value + 1]) / 2.0
    lower, upper = np.zeros(len(places)), np.ones(len(places))
    size = float(TAIL)
    while size <= total[-1]:
        start = np.clip(middle - size / 2.0, 0.0, total[-1] - size)
        among = np.interp(start + size, total, n_hits) - np.interp(start, total, n_hits)
        counts = np.full(len(places), size)
        ends = binomial_interval(np.clip(among, 0.0, size), counts, prior, interval)
        lower, upper = np.maximum(lower, ends[0]), np.minimum(upper, ends[1])
        size = 2.0 * size + 1.0
    return lower, upper


def _constant(
    values: Uncertainty, hits: Hits, weights: Floats, prior: BetaPrior, interval: IntervalOptions
) -> Curve:
    n_hits, count = np.array([weights @ hits]), np.array([weights.sum()])
    lower, upper = binomial_interval(n_hits, count, prior, interval)
    rate = posterior_mean(n_hits, count, prior)
    return Curve(
        uncertainty=values[:1].astype(np.float64),
        probability=rate,
        lower=np.minimum(lower, rate),
        upper=np.maximum(upper, rate),
    )


def _knots(values: Uncertainty, x: Floats) -> Counts:
    """Return places of distinct samples: evenly spaced by rank, and by ``x``."""
    by_rank = np.linspace(0, len(values) - 1, KNOTS_BY_RANK).round().astype(np.int64)
    by_value = np.searchsorted(-x, np.linspace(-x[0], -x[-1], KNOTS_BY_VALUE))
    places = np.unique(np.concatenate([by_rank, np.minimum(by_value, len(values) - 1)]))
    return places[np.unique(values[places], return_index=True)[1]]


def _falling(values: Rates, counts: Counts) -> Rates:
    """Return the falling sequence of least squares: Ayer et al. 1955."""
    found = scipy.optimize.isotonic_regression(-values, weights=counts)
    return np.asarray(-found.x, dtype=np.float64)

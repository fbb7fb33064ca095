"""A smooth curve through hits, stored as knots: from an uncertainty to a probability."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import scipy  # its parts are imported when first used

from howsure.statistics.arrays import Counts, Floats, Hits, Rates, Uncertainty
from howsure.statistics.bins.edges import UNDERFLOW
from howsure.statistics.bins.intervals import IntervalOptions, binomial_interval
from howsure.statistics.bins.prior import BetaPrior, posterior_mean
from howsure.statistics.calibrators.spline import fit_spline

COLUMNS = ("uncertainty", "probability", "lower", "upper")
KNOTS_BY_RANK = 65
KNOTS_BY_VALUE = 33
MAX_KNOTS = KNOTS_BY_RANK + KNOTS_BY_VALUE
# Measures whose x, as in `certainty`, is an estimate of the log-odds of a hit.
LOG_ODDS = ("learned", "neg_log_pmax", "neg_log_topk_mass")

Values: TypeAlias = tuple[Rates, Rates, Rates]


@dataclass(frozen=True, eq=False, kw_only=True)
class Curve:
    """Probability and interval at some uncertainties, linear between and constant beyond them.

    Attributes
    ----------
    uncertainty : ndarray of float64, shape (n_knots,)
        Strictly ascending, and exact in float32.
    probability, lower, upper : ndarray of float64, shape (n_knots,)
        ``lower <= probability <= upper``; a line between two knots keeps this.

    Raises
    ------
    ValueError
        If a column has another length, knots do not ascend, or a value breaks its rule.
    """

    uncertainty: Floats
    probability: Rates
    lower: Rates
    upper: Rates

    def __post_init__(self) -> None:
        for name in COLUMNS:
            object.__setattr__(self, name, np.asarray(getattr(self, name), dtype=np.float64))
        if not len(self.uncertainty) or {getattr(self, name).shape for name in COLUMNS} != {
            (len(self.uncertainty),)
        }:
            raise ValueError("the columns of a curve must have one value per knot, at least one")
        if not (self.uncertainty[1:] > self.uncertainty[:-1]).all():
            raise ValueError("the uncertainties of a curve must ascend strictly")
        if (self.uncertainty.astype(np.float32) != self.uncertainty).any():
            raise ValueError("the uncertainties of a curve must be float32 numbers")
        ordered = (self.lower >= 0.0) & (self.lower <= self.probability)
        if not (ordered & (self.probability <= self.upper) & (self.upper <= 1.0)).all():
            raise ValueError("a curve must have 0 <= lower <= probability <= upper <= 1")

    @property
    def lines(self) -> tuple[Floats, Floats, Floats]:
        """Start, values and slopes of the line that ends at each knot, and of the one beyond.

        Shapes (n_knots + 1,), (3, n_knots + 1) and (3, n_knots + 1); rows are probability, lower
        and upper. The line of an uncertainty is the number of knots below it.
        """
        x, y = self.uncertainty, np.stack([self.probability, self.lower, self.upper])
        slopes = np.zeros((3, len(x) + 1))
        slopes[:, 1:-1] = np.diff(y, axis=1) / np.diff(x)
        return np.append(x[:1], x), np.concatenate([y[:, :1], y], axis=1), slopes

    def at(self, uncertainty: Uncertainty) -> Values:
        """Return probability, lower and upper of each sample, float64 of shape (n_samples,).

        Each result is one product and one sum, so the same in any order and any batch.
        """
        values = np.asarray(uncertainty, np.float32).astype(np.float64)
        start, base, slope = self.lines
        line = np.searchsorted(self.uncertainty, values, side="left")
        found = base[:, line] + slope[:, line] * (values - start[line])
        probability = found[0]
        return probability, np.minimum(found[1], probability), np.maximum(found[2], probability)

    def to_dict(self) -> dict[str, list[float]]:
        """Return plain values, ready for JSON, which keeps every bit of the numbers."""
        return {name: getattr(self, name).tolist() for name in COLUMNS}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> "Curve":
        """Rebuild what `to_dict` gave."""
        return cls(**{name: np.array(values[name], np.float64) for name in COLUMNS})


def certainty(uncertainty: Uncertainty, measure: str) -> Floats:
    """Return ``x``, which falls as the uncertainty rises, float64 of shape (n_samples,).

    For ``-log`` of a mass it is the log-odds of the mass; ``learned`` is a negative log-odds
    already. Other positive measures are transformed alike, and all others by normal scores of
    their ranks.
    """
    values = uncertainty.astype(np.float64)
    if measure == "learned":
        return -values
    if values.min() >= 0.0:
        return np.asarray(-np.log(np.expm1(np.maximum(values, float(UNDERFLOW)))))
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
    weights: Floats | None = None,
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
        Its level; a simultaneous level is divided by the number of knots.
    monotone : bool
        Whether the probability must not rise with the uncertainty.
    weights : ndarray of float64, shape (n_samples,), optional
        How many samples each one counts for.
    """
    order = np.argsort(uncertainty, kind="stable")
    values, hits = uncertainty[order], hits[order]
    weights = None if weights is None else weights[order]
    if prior.degenerate or values[0] == values[-1]:
        return _constant(values, hits, prior, interval)
    x = certainty(values, measure)
    places = _knots(values, x)
    found = fit_spline(
        x[::-1],
        hits[::-1],
        None if weights is None else weights[::-1],
        prior=measure in LOG_ODDS,
    )
    at = x[places]
    probability = found.probability(at)
    lower, upper = found.interval(at, interval.level_of_each(len(at)))
    if monotone:
        counts = np.diff(np.append(places, len(values)))
        probability, lower, upper = (_falling(v, counts) for v in (probability, lower, upper))
    return Curve(
        uncertainty=values[places].astype(np.float64),
        probability=probability,
        lower=np.minimum(lower, probability),
        upper=np.maximum(upper, probability),
    )


def _constant(
    values: Uncertainty, hits: Hits, prior: BetaPrior, interval: IntervalOptions
) -> Curve:
    n_hits, count = np.array([np.count_nonzero(hits)]), np.array([hits.size])
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

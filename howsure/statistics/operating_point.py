"""A threshold on the uncertainty: what it does to labelled samples, and how it is chosen."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from howsure.statistics.arrays import Hits, Uncertainty, as_hits, as_uncertainty
from howsure.statistics.bins.intervals import proportion_interval
from howsure.statistics.ranking import RankedSamples, ranking_of
from howsure.statistics.selective import SelectiveTarget, certifiable_risk, fit_selective

ShareInterval = tuple[float, float]


@dataclass(frozen=True)
class Consequences:
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


def threshold_of_coverage(ranked: RankedSamples, coverage: float) -> float:
    """Return the smallest threshold that accepts at least this share of the samples.

    Samples of equal uncertainty are accepted together: it may accept more.

    Raises
    ------
    ValueError
        If ``coverage`` is not in (0, 1].
    """
    if not 0.0 < coverage <= 1.0:
        raise ValueError(f"coverage must lie in (0, 1], not {coverage}")
    return float(ranked.thresholds_of_coverage(np.array([coverage]))[0])


Amounts = tuple[float, float]


@dataclass(frozen=True)
class ExpectedVolume:
    """What is to be expected of so many answers on data like the calibration set.

    Attributes
    ----------
    volume : int
    accepted, errors, reviewed : float
        How many are accepted, how many of those are wrong, and how many are left to others; on
        average, so that they may be parts of one.
    accepted_interval, errors_interval : tuple of float
        ``volume`` times the exact interval of the share. Errors are held against all samples, so
        that theirs allows for the coverage being uncertain as well.
    """

    volume: int
    accepted: float
    accepted_interval: Amounts
    errors: float
    errors_interval: Amounts
    reviewed: float


def expected_volume(seen: Consequences, volume: int, *, level: float) -> ExpectedVolume:
    """Return what follows for ``volume`` answers; ``level`` is of the intervals.

    Raises
    ------
    ValueError
        If ``volume`` is negative.
    """
    if volume < 0:
        raise ValueError(f"volume must not be negative, not {volume}")

    def amounts(shares: tuple[float, float]) -> Amounts:
        return volume * shares[0], volume * shares[1]

    accepted = volume * seen.n_accepted / seen.n_samples
    return ExpectedVolume(
        volume=volume,
        accepted=accepted,
        accepted_interval=amounts(seen.coverage_interval),
        errors=volume * seen.n_errors / seen.n_samples,
        errors_interval=amounts(proportion_interval(seen.n_errors, seen.n_samples, level)),
        reviewed=volume - accepted,
    )


@dataclass(frozen=True)
class ThresholdChoice:
    """What a threshold is chosen by: itself, the least share to accept, or the largest risk.

    Exactly one of the first three is set; ``delta``, the probability that the bound on the risk
    fails, goes with ``max_risk``.
    """

    threshold: float | None = None
    coverage: float | None = None
    max_risk: float | None = None
    delta: float = 0.05

    def as_dict(self) -> dict[str, Any]:
        """Return what was asked for."""
        if self.max_risk is not None:
            return {"max_risk": self.max_risk, "delta": self.delta}
        if self.coverage is not None:
            return {"coverage": self.coverage}
        return {"threshold": self.threshold}


@dataclass(frozen=True)
class ChosenThreshold:
    """A threshold and what it does to the calibration set.

    Attributes
    ----------
    threshold : float or None
        Accept ``U <= threshold``; None where none keeps to the risk.
    consequences : Consequences or None
        None without a threshold, and where no samples are kept to look at.
    certified : bool
        Whether the risk is bounded with confidence ``1 - delta``: of a threshold that was chosen by
        a risk, and of no other.
    labels_missing : int or None
        Where none keeps to the risk, about how many more labelled samples would let one.
    max_risk : float or None
        The risk that was asked for; of another choice the least one that could have been, to accept
        as much: None where there is none, or nothing is accepted.
    expected : ExpectedVolume or None
        What follows for so many answers, where it was asked for.
    """

    threshold: float | None
    consequences: Consequences | None
    certified: bool
    labels_missing: int | None = None
    max_risk: float | None = None
    expected: ExpectedVolume | None = None


def choose_threshold(
    choice: ThresholdChoice,
    samples: RankedSamples,
    *,
    level: float,
    volume: int | None = None,
) -> ChosenThreshold:
    """Return the threshold that a choice means on these samples; ``level`` is of the intervals.

    With ``volume``, also what follows for so many answers.

    Raises
    ------
    ValueError
        If a number of the choice is out of range.
    """
    uncertainty, hits = samples.values.astype(np.float32, copy=False), samples.hits
    ranked = ranking_of(uncertainty, hits)
    missing: int | None = None
    if choice.max_risk is not None:
        found = fit_selective(ranked, SelectiveTarget(choice.max_risk, choice.delta))
        threshold, missing = found.threshold, found.labels_missing
    elif choice.coverage is not None:
        threshold = threshold_of_coverage(ranked, choice.coverage)
    else:
        threshold = choice.threshold
    if threshold is None:
        return ChosenThreshold(
            None, None, certified=False, labels_missing=missing, max_risk=choice.max_risk
        )
    seen = consequences(uncertainty, hits, threshold, level=level)
    max_risk = choice.max_risk
    if max_risk is None and seen.n_accepted:
        max_risk = certifiable_risk(ranked, seen.n_accepted, delta=choice.delta)
    return ChosenThreshold(
        threshold,
        seen,
        certified=choice.max_risk is not None,
        max_risk=max_risk,
        expected=None if volume is None else expected_volume(seen, volume, level=level),
    )

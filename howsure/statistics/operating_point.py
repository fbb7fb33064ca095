"""Choose a threshold on the uncertainty, and report its effect on labelled samples."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from howsure.statistics.accepted import AcceptedSamples, count_accepted
from howsure.statistics.arrays import Hits, Uncertainty
from howsure.statistics.bins.design import ALIKE, SampleDesign
from howsure.statistics.bins.intervals import proportion_interval
from howsure.statistics.effective import effective_share
from howsure.statistics.errors_by_class import ClassErrors, LabelledSamples
from howsure.statistics.ranking import RankedSamples, ranking_of
from howsure.statistics.selective import SelectiveTarget, certifiable_risk, fit_selective

ShareInterval = tuple[float, float]


@dataclass(frozen=True, kw_only=True)
class Effect(AcceptedSamples):
    """How many labelled samples a threshold accepts, and how many of those are errors.

    Attributes
    ----------
    risk : float or None
        Weighted error rate of accepted samples; None if no sample is accepted.
    errors : float
        Weighted share of all samples that are accepted and have no hit.
    coverage_interval, risk_interval, errors_interval : tuple of float
        Exact binomial intervals (Clopper & Pearson 1934), with weights or groups of the effective
        samples. If the threshold was chosen on the same samples they are optimistic; the test of
        `fit_selective` is not.
    by_class : tuple of ClassErrors
        The classes with the largest shares of errors, if they are known.
    """

    coverage_interval: ShareInterval
    risk: float | None
    risk_interval: ShareInterval | None
    errors: float
    errors_interval: ShareInterval
    by_class: tuple[ClassErrors, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Consequences(Effect):
    """The effect of a threshold on the calibration set, and on the evaluation set if there is one.

    Attributes
    ----------
    evaluation : Effect or None
        These samples had no part in the choice of the threshold.
    """

    evaluation: Effect | None = None


def consequences(
    uncertainty: Uncertainty,
    hits: Hits,
    threshold: float,
    *,
    level: float,
    design: SampleDesign = ALIKE,
    evaluation: RankedSamples | None = None,
) -> Consequences:
    """Return the effect of accepting ``U <= threshold`` on labelled samples.

    Parameters
    ----------
    uncertainty : ndarray of float32, shape (n_samples,)
        Finite, at least one.
    hits : ndarray of bool, shape (n_samples,)
    threshold : float
        Compared as float32, as in predictions.
    level : float
        Of the intervals, in (0, 1).
    design : SampleDesign
    evaluation : RankedSamples, optional
        Other labelled samples: the effect on them is returned, too.
    """
    judged = None
    if evaluation is not None:
        values = evaluation.values.astype(np.float32, copy=False)
        judged = effect(values, evaluation.hits, threshold, level, evaluation.design)
    seen = effect(uncertainty, hits, threshold, level, design)
    return Consequences(**vars(seen), evaluation=judged)


def effect(
    uncertainty: Uncertainty, hits: Hits, threshold: float, level: float, design: SampleDesign
) -> Effect:
    """Return the effect of accepting ``U <= threshold`` on one set, as `consequences` does."""
    found = count_accepted(uncertainty, hits, threshold, design)
    n_samples, n_accepted, n_errors = found.n_samples, found.n_accepted, found.n_errors
    accepted = uncertainty <= np.float32(threshold)
    coverage = effective_share(accepted, design)
    errors = effective_share(accepted & ~hits, design)
    risk, risk_interval = None, None
    if n_accepted:
        risk = n_errors / n_accepted if found.effective is None else found.effective.share
        risk_interval = proportion_interval(n_errors, n_accepted, level, found.effective)
    return Effect(
        **vars(found),
        coverage_interval=proportion_interval(n_accepted, n_samples, level, coverage),
        risk=risk,
        risk_interval=risk_interval,
        errors=n_errors / n_samples if errors is None else errors.share,
        errors_interval=proportion_interval(n_errors, n_samples, level, errors),
    )


Amounts = tuple[float, float]


@dataclass(frozen=True)
class ExpectedVolume:
    """Expected counts for a number of answers on data like the calibration set.

    By the evaluation set, if there is one and the threshold was chosen by a risk, which means by
    the errors of the calibration set.

    Attributes
    ----------
    volume : int
        Number of answers.
    accepted, errors, reviewed : float
        Mean numbers of accepted answers, of errors among them, and of answers left for review.
    accepted_interval, errors_interval : tuple of float
        ``volume`` times the exact interval of the share. Errors are a share of all samples, so
        their interval includes the uncertainty of the coverage. Without an evaluation set, a risk
        that was tested is the upper end.
    """

    volume: int
    accepted: float
    accepted_interval: Amounts
    errors: float
    errors_interval: Amounts
    reviewed: float


def expected_volume(
    seen: Consequences, volume: int, *, max_risk: float | None = None
) -> ExpectedVolume:
    """Return the expected counts for ``volume`` answers, with the intervals of the shares.

    ``max_risk`` is the risk by which the threshold was chosen.
    """
    judged = seen if seen.evaluation is None or max_risk is None else seen.evaluation

    def amounts(shares: tuple[float, float]) -> Amounts:
        return volume * shares[0], volume * shares[1]

    errors = judged.errors_interval
    if max_risk is not None and judged is seen:
        errors = min(errors[0], seen.coverage * max_risk), seen.coverage * max_risk
    accepted = volume * judged.coverage
    return ExpectedVolume(
        volume=volume,
        accepted=accepted,
        accepted_interval=amounts(judged.coverage_interval),
        errors=volume * judged.errors,
        errors_interval=amounts(errors),
        reviewed=volume - accepted,
    )


@dataclass(frozen=True)
class ThresholdChoice:
    """The criterion of a threshold: a fixed value, a minimal coverage, or a maximal risk.

    Exactly one of the first three is set. ``delta``, the probability that the bound on the risk
    fails, belongs to ``max_risk``.
    """

    threshold: float | None = None
    coverage: float | None = None
    max_risk: float | None = None
    delta: float = 0.05

    def as_dict(self) -> dict[str, Any]:
        """Return the criterion as plain data."""
        if self.max_risk is not None:
            return {"max_risk": self.max_risk, "delta": self.delta}
        if self.coverage is not None:
            return {"coverage": self.coverage}
        return {"threshold": self.threshold}


@dataclass(frozen=True)
class ChosenThreshold:
    """A threshold and its effect on the calibration set.

    Attributes
    ----------
    threshold : float or None
        Accept ``U <= threshold``; None if no threshold meets the risk.
    consequences : Consequences or None
        None without a threshold.
    is_tested : bool
        Whether the risk is bounded with confidence ``1 - delta``: only if chosen by a risk.
    labels_missing : int or None
        If no threshold meets the risk, about how many more labelled samples would allow one; None
        if these do not tell a number.
    out_of_reach : bool
        Whether more samples would clearly not allow one.
    max_risk : float or None
        The requested risk. For other criteria, the smallest risk that could be certified at the
        same coverage; None if there is none, or nothing is accepted.
    expected : ExpectedVolume or None
        Expected counts, if a volume was given.
    """

    threshold: float | None
    consequences: Consequences | None
    is_tested: bool
    labels_missing: int | None = None
    out_of_reach: bool = False
    max_risk: float | None = None
    expected: ExpectedVolume | None = None


def choose_threshold(
    choice: ThresholdChoice,
    samples: RankedSamples,
    *,
    level: float,
    volume: int | None = None,
    evaluation: RankedSamples | None = None,
) -> ChosenThreshold:
    """Return the threshold that meets the criterion on these samples, with intervals at ``level``.

    With ``volume``, also return the expected counts for this number of answers; with
    ``evaluation``, the effect on these samples.

    Raises
    ------
    ValueError
        If a number of the choice is out of range.
    """
    uncertainty, hits = samples.values.astype(np.float32, copy=False), samples.hits
    ranked = ranking_of(uncertainty, hits, samples.design)
    missing, out_of_reach = None, False
    if choice.max_risk is not None:
        found = fit_selective(ranked, SelectiveTarget(choice.max_risk, choice.delta))
        threshold, missing = found.threshold, found.labels_missing
        out_of_reach = found.out_of_reach
    elif choice.coverage is not None:
        threshold = float(ranked.thresholds_of_coverage(np.array([choice.coverage]))[0])
    else:
        threshold = choice.threshold
    if threshold is None:
        return ChosenThreshold(
            None,
            None,
            is_tested=False,
            labels_missing=missing,
            out_of_reach=out_of_reach,
            max_risk=choice.max_risk,
        )
    seen = consequences(
        uncertainty, hits, threshold, level=level, design=samples.design, evaluation=evaluation
    )
    max_risk = choice.max_risk
    if max_risk is None and seen.n_accepted:
        max_risk = certifiable_risk(ranked, seen.n_accepted, delta=choice.delta)
    return ChosenThreshold(
        threshold,
        seen,
        is_tested=choice.max_risk is not None,
        max_risk=max_risk,
        expected=None
        if volume is None
        else expected_volume(seen, volume, max_risk=choice.max_risk),
    )


def with_errors_by_class(
    found: ChosenThreshold,
    samples: LabelledSamples,
    evaluation: LabelledSamples | None,
    *,
    level: float,
) -> ChosenThreshold:
    """Return the choice with the errors by class on each set; pairs have none."""
    seen = found.consequences
    if seen is None or found.threshold is None:
        return found
    judged = seen.evaluation
    if judged is not None and evaluation is not None:
        judged = replace(judged, by_class=evaluation.errors_by_class(found.threshold, level))
    by_class = samples.errors_by_class(found.threshold, level)
    return replace(found, consequences=replace(seen, by_class=by_class, evaluation=judged))

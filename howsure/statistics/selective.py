"""Selective prediction: accept the most samples whose risk is bounded with confidence."""

from dataclasses import dataclass

import numpy as np
from scipy.special import betainc

from howsure.statistics.accepted import AcceptedSamples
from howsure.statistics.arrays import Counts, Floats, Rates
from howsure.statistics.bins.intervals import clopper_pearson
from howsure.statistics.effective import EffectiveShare, effective_share
from howsure.statistics.ranking import RankedSamples

N_STARTS = 5
N_RANKS = 200
FEW = 100.0  # samples, of which an error rate is mostly luck
MOST_GROWTH = 100.0  # of a set for which missing labels are estimated
GROWTH = np.geomspace(1.0, MOST_GROWTH, 400)


@dataclass(frozen=True)
class SelectiveTarget:
    """A bound on the risk of accepted samples.

    Attributes
    ----------
    max_risk : float
        ``r``: error rate among accepted samples, in (0, 1).
    delta : float
        Probability that the bound fails, over calibration sets, in (0, 1).

    Raises
    ------
    ValueError
        If one is out of range.
    """

    max_risk: float
    delta: float = 0.05

    def __post_init__(self) -> None:
        for name in ("max_risk", "delta"):
            if not 0.0 < getattr(self, name) < 1.0:
                raise ValueError(f"{name} must lie in (0, 1), not {getattr(self, name)}")

    @property
    def least_rank(self) -> int:
        """``m0 = ceil(log(delta / 5) / log(1 - r))``: fewer samples cannot pass without errors."""
        return int(np.ceil(np.log(self.delta / N_STARTS) / np.log1p(-self.max_risk)))


@dataclass(frozen=True)
class SelectiveResult:
    """The threshold found for a target.

    Attributes
    ----------
    target : SelectiveTarget
    threshold : float or None
        Accept ``U <= threshold``; None if no rank passes.
    coverage : float or None
        Weighted share of the calibration set that is accepted.
    n_accepted, n_errors : int
        Of the calibration set; 0 if no rank passes.
    effective : EffectiveShare or None
        The share of errors; None if no rank passes, or samples have neither weights nor groups.
    labels_missing : int or None
        If no rank passes, about how many more samples would give a threshold. None if 100 times
        the samples would not, as far as these tell, and if there is a threshold.
    out_of_reach : bool
        Whether every share from a twentieth on has clearly more errors, by the exact test at 5 %,
        so that more samples would not give a threshold.
    evaluation : AcceptedSamples or None
        The same threshold on an evaluation set, which had no part in its choice.
    """

    target: SelectiveTarget
    threshold: float | None
    coverage: float | None
    n_accepted: int
    n_errors: int
    labels_missing: int | None = None
    evaluation: AcceptedSamples | None = None
    effective: EffectiveShare | None = None
    out_of_reach: bool = False


DEFAULT_TARGETS = (SelectiveTarget(0.05, 0.05), SelectiveTarget(0.01, 0.05))


def fit_selective(ranked: RankedSamples, target: SelectiveTarget) -> SelectiveResult:
    """Find the threshold of largest coverage whose risk is at most ``r`` with confidence.

    Fixed-sequence testing (Angelopoulos et al. 2021, section 2.3) along ranks of the samples by
    uncertainty, from 5 starts fixed in advance, from ``m0`` to ``n`` in equal ratios, so that a
    small share of a large set can pass. Each shares the error probability and walks up a grid of
    200 ranks until a test first fails. The largest rank that passed is kept. A single start would
    be fragile, because wrong labels sit among the most certain samples. Each rank is tested by the
    exact binomial test of ``risk > r`` at level ``delta / 5``; with weights or groups, of the
    weighted risk of the independent samples that the accepted ones are worth
    (`howsure.statistics.effective`), which is approximate. A rank inside a block of equal values
    means the whole block.

    Parameters
    ----------
    ranked : RankedSamples
    target : SelectiveTarget
    """
    best = largest_pass(ranked, target)
    if best is None:
        missing = _labels_missing(ranked, target)
        out_of_reach = missing is None and _is_out_of_reach(ranked, target)
        return SelectiveResult(target, None, None, 0, 0, missing, out_of_reach=out_of_reach)
    n_accepted = int(ranked.accepted[best])
    design = ranked.design.take(slice(n_accepted))
    return SelectiveResult(
        target=target,
        threshold=float(ranked.thresholds[best]),
        coverage=float(ranked.coverage[best]),
        n_accepted=n_accepted,
        n_errors=int(ranked.errors[best]),
        labels_missing=None,
        effective=effective_share(~ranked.hits[:n_accepted], design),
    )


def risk_p_values(errors: Counts | Floats, counts: Counts | Floats, max_risk: float) -> Rates:
    """Return ``P(Binomial(counts, max_risk) <= errors)``, the p-value of a risk of ``max_risk``."""
    passed = np.asarray(counts - errors, dtype=np.float64)
    # Without a hit the sum is over all outcomes; 1 keeps the parameter above 0.
    some = np.where(passed > 0.0, passed, 1.0)
    p_values = betainc(some, errors + 1.0, 1.0 - max_risk)
    return np.where(passed > 0.0, p_values, 1.0)


def tested_bound(errors: Counts, counts: Counts, delta: float) -> Rates:
    """Return the largest risk that the test of a rank does not reject: it passes if not larger.

    Of samples without weights and groups. ``delta`` is that of the target.
    """
    return clopper_pearson(errors, counts, 1.0 - 2.0 * delta / N_STARTS)[1]


def largest_pass(ranked: RankedSamples, target: SelectiveTarget) -> int | None:
    """Return the index of the threshold that `fit_selective` keeps, if any."""
    least, n_samples = target.least_rank, ranked.n_samples
    if n_samples < least:
        return None
    starts = np.rint(np.geomspace(least, n_samples, N_STARTS))
    ranks = np.union1d(np.rint(np.linspace(least, n_samples, N_RANKS)), starts)
    tested = ranked.index_of_rank(ranks)
    level = target.delta / N_STARTS
    rates, worth = ranked.error_rates(ranked.accepted[tested], level)
    passes = risk_p_values(rates * worth, worth, target.max_risk) <= level
    failures = np.append(np.flatnonzero(~passes), len(ranks))
    first = np.searchsorted(ranks, starts)
    last = failures[np.searchsorted(failures, first)] - 1
    walked = last[last >= first]
    return None if walked.size == 0 else int(tested[walked.max()])


def _labels_missing(ranked: RankedSamples, target: SelectiveTarget) -> int | None:
    """Return about how many more samples would let a start pass.

    This assumes that the risk at each coverage stays as observed, and that large blocks of equal
    values grow with the set. The risk of fewer samples than the first start needs, than 100, or
    than a quarter of a small set, is taken to be theirs: that of the first few is mostly luck.
    Weighted and grouped samples stay worth as much each.
    """
    n_samples, least = ranked.n_samples, target.least_rank
    totals = np.unique(np.ceil(max(n_samples + 1, least) * GROWTH))
    starts = np.rint(np.geomspace(np.full(len(totals), least), totals, N_STARTS))
    growth, few = totals / n_samples, min(max(float(least), FEW), n_samples / 4.0)
    level = target.delta / N_STARTS
    rates, worth = ranked.error_rates(ranked.accepted, level)
    accepted, wrong = np.append(0, ranked.accepted), np.append(0, rates * ranked.accepted)
    places = starts / growth
    judged = np.maximum(places, few)
    errors = np.interp(judged, accepted, wrong) / judged * starts
    ends = np.minimum(np.searchsorted(accepted, places), len(accepted) - 1)
    is_block = accepted[ends] - accepted[ends - 1] >= max(few, 2.0)
    counts = np.where(is_block, np.rint(growth * accepted[ends]), starts)
    errors = np.ceil(np.where(is_block, growth * wrong[ends], errors) - 1e-9)
    each = np.interp(judged, ranked.accepted, worth / ranked.accepted)
    passes = (risk_p_values(errors * each, counts * each, target.max_risk) <= level).any(axis=0)
    return int(totals[np.argmax(passes)]) - n_samples if passes.any() else None


LEAST_SHARE = 0.05
CLEAR_LEVEL = 0.05


def _is_out_of_reach(ranked: RankedSamples, target: SelectiveTarget) -> bool:
    counts = ranked.accepted[ranked.coverage >= LEAST_SHARE]
    # Of fewer, even errors only would not be clear.
    counts = counts[target.max_risk**counts < CLEAR_LEVEL]
    rates, worth = ranked.error_rates(counts, CLEAR_LEVEL)
    errors = rates * worth
    p_values = betainc(np.maximum(errors, 1e-9), worth - errors + 1.0, target.max_risk)
    return counts.size > 0 and bool(np.all((errors > 0.0) & (p_values < CLEAR_LEVEL)))


# Rates are searched in steps of 0.01 %: a finer resolution is of no practical use.
STEPS = 10_000


def certifiable_risk(ranked: RankedSamples, n_accepted: int, *, delta: float) -> float | None:
    """Return a minimal ``max_risk``, in steps of 0.01 %, that accepts this many samples.

    For this risk `fit_selective` accepts at least ``n_accepted`` samples, and for 0.01 % less it
    does not. With few samples a larger risk may accept fewer, because other ranks are tested. Then
    several such risks exist, and one of them is returned.

    Parameters
    ----------
    ranked : RankedSamples
    n_accepted : int
        Number of samples to accept.
    delta : float
        Probability that the bound fails, in (0, 1).

    Returns
    -------
    float or None
        None if no risk below 1 accepts as many.

    Raises
    ------
    ValueError
        If ``delta`` is out of range.
    """

    def is_enough(step: int) -> bool:
        found = largest_pass(ranked, SelectiveTarget(step / STEPS, delta))
        return found is not None and int(ranked.accepted[found]) >= n_accepted

    below, enough = 0, STEPS - 1
    if not is_enough(enough):
        return None
    while enough - below > 1:
        middle = (below + enough) // 2
        if is_enough(middle):
            enough = middle
        else:
            below = middle
    return enough / STEPS

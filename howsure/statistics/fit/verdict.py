"""The verdict on an event: which method has the smallest loss."""

from collections.abc import Mapping
from dataclasses import replace

from howsure.statistics.bins.table import BinTable
from howsure.statistics.comparison import LEAST_ANSWERS, PairedDifference
from howsure.statistics.fit.result import BaselineFit, BestMethod, MeasureFit, Verdict

BINS = "bins"
# The error that baselines have too, so it is the one of the report's figures.
ERROR = "ece_15"
MOST_EXCESS = 0.25


def reach_verdict(served: MeasureFit, baselines: Mapping[str, BaselineFit]) -> Verdict:
    """Return the method of least negative log-likelihood, and its lead.

    The served bins are compared with every baseline, by cross-validation and on the evaluation set,
    if there is one.
    """
    validated = _validated(served, baselines)
    if validated is None:
        return Verdict(None)
    lead = None if validated.best == BINS else validated.difference
    # The bins clearly lose, by a quarter of the least loss.
    outdone = rarer_outcome(served.table)[0] >= LEAST_ANSWERS and (
        lead is not None and lead.clear and lead.mean >= MOST_EXCESS * validated.nll
    )
    return Verdict(validated.best, validated, _evaluated(served, baselines), outdone)


def _validated(served: MeasureFit, baselines: Mapping[str, BaselineFit]) -> BestMethod | None:
    scores = {BINS: served.scores["nll"]} | {n: b.scores["nll"] for n, b in baselines.items()}
    most = max(score.folds for score in scores.values())
    # A mean over fewer folds (an infinite fold is left out) cannot compete with a mean over all.
    losses = {
        name: score.mean
        for name, score in scores.items()
        if score.mean is not None and score.folds == most
    }
    # The same holds for differences: without their infinite folds the bins could look better.
    differences = {
        n: b.difference.get("nll") if BINS in losses else None for n, b in baselines.items()
    }
    return _finding(losses, differences)


def _evaluated(served: MeasureFit, baselines: Mapping[str, BaselineFit]) -> BestMethod | None:
    if served.evaluation is None:
        return None
    scores = {BINS: served.evaluation["nll"]}
    for name, baseline in baselines.items():
        scores[name] = (baseline.evaluation or {}).get("nll")
    losses = {name: score for name, score in scores.items() if score is not None}
    differences = {name: b.evaluation_difference.get("nll") for name, b in baselines.items()}
    return _finding(losses, differences)


def _finding(
    losses: Mapping[str, float], differences: Mapping[str, PairedDifference | None]
) -> BestMethod | None:
    """Return the best, the bins among equals; ``differences`` are baseline minus bins."""
    if not losses:
        return None
    rivals = len(differences)
    best = min(losses, key=lambda name: (losses[name], name != BINS))
    if best != BINS:
        return BestMethod(best, losses[best], BINS, _more(differences[best], rivals, sign=-1.0))
    others = {name: loss for name, loss in losses.items() if name != BINS}
    rival = min(others, key=lambda name: others[name]) if others else None
    found = differences[rival] if rival else None
    return BestMethod(best, losses[best], rival, _more(found, rivals, sign=1.0))


def _more(
    difference: PairedDifference | None, rivals: int, *, sign: float
) -> PairedDifference | None:
    """Return the lead over the rival, at least 0 in spite of rounding."""
    if difference is None:
        return None
    return replace(difference, mean=max(sign * difference.mean, 0.0), rivals=rivals)


def rarer_outcome(table: BinTable) -> tuple[int, str]:
    """Return how often the event holds, or fails if that is rarer, and the verb for it."""
    n_hits, n_samples = int(table.hits.sum()), int(table.counts.sum())
    return min((n_hits, "holds"), (n_samples - n_hits, "fails"))

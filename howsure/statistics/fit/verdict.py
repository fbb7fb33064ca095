"""The verdict on an event: which method has the smallest loss."""

from collections.abc import Mapping
from dataclasses import replace

from howsure.statistics.comparison import PairedDifference
from howsure.statistics.fit.result import BaselineFit, BestMethod, MeasureFit, Verdict

BINS = "bins"


def reach_verdict(k: int, served: MeasureFit, baselines: Mapping[str, BaselineFit]) -> Verdict:
    """Return the method of least negative log-likelihood, and its lead.

    The served bins are compared with every baseline, by cross-validation and on the evaluation set,
    if there is one.
    """
    bins = f"the bins served ({served.measure}, {served.table.lookup})"
    validated = _validated(served, baselines)
    if validated is None:
        sentence = f"Top-{k}: no cross-validation, so methods cannot be compared."
        return Verdict(None, sentence, None, None)
    evaluated = _evaluated(served, baselines)
    sentence = f"Top-{k}: " + _said(validated, bins, "cross-validated negative log-likelihood")
    if evaluated is not None:
        sentence += " On the evaluation set " + _said(evaluated, bins, "negative log-likelihood")
    return Verdict(validated.best, sentence, validated, evaluated)


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
    best = min(losses, key=lambda name: (losses[name], name != BINS))
    if best != BINS:
        return BestMethod(best, losses[best], BINS, _more(differences[best], sign=-1.0))
    others = {name: loss for name, loss in losses.items() if name != BINS}
    rival = min(others, key=lambda name: others[name]) if others else None
    found = differences[rival] if rival else None
    return BestMethod(best, losses[best], rival, _more(found, sign=1.0))


def _more(difference: PairedDifference | None, *, sign: float) -> PairedDifference | None:
    """Return the lead over the rival, at least 0 in spite of rounding."""
    if difference is None:
        return None
    return replace(difference, mean=max(sign * difference.mean, 0.0))


def _said(found: BestMethod, bins: str, score: str) -> str:
    def name(subject: str) -> str:
        return bins if subject == BINS else subject

    verb = "have" if found.best == BINS else "has"
    text = f"{name(found.best)} {verb} the least {score}, {found.nll:.5f}"
    difference = found.difference
    if found.rival is None or difference is None:
        return text + "."
    error = ""
    if difference.standard_error is not None:
        error = f" ± {difference.standard_error:.5f}"
    share = f" ({difference.mean / found.nll:.1%})" if found.nll > 0.0 else ""
    follows = f"; {name(found.rival)} {'have' if found.rival == BINS else 'has'} "
    follows += f"{difference.mean:.5f}{error} more{share}"
    if not difference.clear:
        follows += ", which may be chance"
    return text + follows + "."

"""The verdict on an event: which method has the smallest loss."""

from collections.abc import Mapping
from dataclasses import replace

from howsure.statistics.bins.table import BinTable
from howsure.statistics.comparison import LEAST_ANSWERS, PairedDifference
from howsure.statistics.fit.outcome import OutcomeName
from howsure.statistics.fit.result import BaselineFit, BestMethod, MeasureFit, Verdict
from howsure.statistics.plain import percent

BINS = "bins"
# The error that baselines have too, so it is the one of the report's figures.
ERROR = "ece_15"
MOST_EXCESS = 0.25
# Bands are of independent samples that count alike.
NOT_TESTED = "which is not tested for chance, because samples have weights or groups"


def reach_verdict(
    k: int, served: MeasureFit, baselines: Mapping[str, BaselineFit], *, folds: int
) -> Verdict:
    """Return the method of least negative log-likelihood, and its lead.

    The served bins are compared with every baseline, by cross-validation and on the evaluation set,
    if there is one. The sentence compares no methods if the event holds or fails less often than
    there are ``folds``.
    """
    validated = _validated(served, baselines)
    if validated is None:
        sentence = f"Top-{k}: no cross-validation, so methods cannot be compared."
        return Verdict(None, sentence, None, None, fitted_on(baselines))
    evaluated = _evaluated(served, baselines)
    sentence = _sentence(
        k,
        served,
        validated if evaluated is None else evaluated,
        n_methods=1 + len(baselines),
        evaluated=evaluated is not None,
        folds=folds,
    )
    lead = None if validated.best == BINS else validated.difference
    # The bins clearly lose, by a quarter of the least loss.
    outdone = rarer_outcome(served.table)[0] >= LEAST_ANSWERS and (
        lead is not None and lead.clear and lead.mean >= MOST_EXCESS * validated.nll
    )
    return Verdict(validated.best, sentence, validated, evaluated, fitted_on(baselines), outdone)


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


NAMES = {
    "raw_softmax": "the model's own softmax",
    "temperature": "temperature scaling",
    "beta_calibration": "beta calibration",
    "quadratic_logistic": "quadratic logistic regression",
    "isotonic": "isotonic regression",
    "constant": "the same probability for all",
    "smooth_curve": "a smooth curve",
    "interpolated_bins": "interpolation between bins",
    "step_bins": "one probability for each bin",
}


FITTED_ON: dict[OutcomeName, str] = {
    "event": "the probability of raw_softmax.",
    "class_1": (
        "the model's probability of class 1, and compared by their probability of the predicted "
        "class."
    ),
}


def fitted_on(baselines: Mapping[str, BaselineFit]) -> str:
    """Return the probability that the binary methods are fitted on, in a sentence for each."""
    said = []
    for outcome, words in FITTED_ON.items():
        names = [name for name, found in baselines.items() if found.fitted_on == outcome]
        if names:
            *others, last = names
            subject = f"{', '.join(others)} and {last} are" if others else f"{last} is"
            said.append(f"{subject} fitted on {words}")
    return " ".join(said)


def rarer_outcome(table: BinTable) -> tuple[int, str]:
    """Return how often the event holds, or fails if that is rarer, and the verb for it."""
    n_hits, n_samples = int(table.hits.sum()), int(table.counts.sum())
    return min((n_hits, "holds"), (n_samples - n_hits, "fails"))


def _sentence(
    k: int,
    served: MeasureFit,
    found: BestMethod | None,
    *,
    n_methods: int,
    evaluated: bool,
    folds: int,
) -> str:
    """Return how good the served probability is, and then what else was tried."""
    where = "on the evaluation set" if evaluated else "in cross-validation"
    said = [f"Top-{k}, {where}: {_error(served, evaluated=evaluated)}"]
    rarer, outcome = rarer_outcome(served.table)
    if rarer < folds:
        said.append(
            f"Top-{k} {outcome} in {rarer} of {int(served.table.counts.sum()):,} calibration "
            "samples: too rarely to compare methods."
        )
    elif found is not None:
        said.append(_compared(found, f"{served.measure}, {served.table.lookup}", n_methods))
    return " ".join(said)


def _error(served: MeasureFit, *, evaluated: bool) -> str:
    band = served.evaluation_ece_band if evaluated else served.ece_band
    over_folds = served.scores.get(ERROR)
    mean = None if over_folds is None else over_folds.mean
    error = (served.evaluation or {}).get(ERROR) if evaluated else mean
    if error is None:
        return "the set is too small to measure a calibration error."
    chance = NOT_TESTED if band is None else band.explained
    return f"stated probabilities are off by {percent(error)} on average ({ERROR}), {chance}."


def _compared(found: BestMethod, served: str, n_methods: int) -> str:
    difference, nll = found.difference, f"{found.nll:.5f}"
    share = "" if difference is None else _share(difference.mean, found.nll)
    chance = "" if difference is None or difference.clear else ", which may be chance"
    if found.best != BINS:
        better = NAMES.get(found.best, found.best)
        better = better[0].upper() + better[1:]
        ours = "" if difference is None else f"; that of the served method ({served}) is {share}"
        return f"{better} has the lowest loss (negative log-likelihood {nll}){ours}{chance}."
    said = f"The served method ({served}) has"
    if found.rival is None or difference is None:
        return f"{said} a loss (negative log-likelihood) of {nll}."
    return (
        f"{said} the lowest loss (negative log-likelihood {nll}) of {n_methods} methods; that of "
        f"{NAMES.get(found.rival, found.rival)} is {share}{chance}."
    )


def _share(mean: float, nll: float) -> str:
    if nll <= 0.0 or mean > nll:
        return "more than twice as high" if mean > 0.0 else "equal"
    return f"{percent(mean / nll)} higher" if mean > 0.0 else "equal"

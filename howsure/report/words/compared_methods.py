"""The verdict on an event in words: how good the served probability is beside other methods."""

from howsure.shares import percent
from howsure.statistics.diagnostics.consistency import ConsistencyBand
from howsure.statistics.fit.outcome import OutcomeName
from howsure.statistics.fit.result import BestMethod, EventFit, MeasureFit
from howsure.statistics.fit.verdict import BINS, ERROR, rarer_outcome

# Bands are of independent samples that count alike.
NOT_TESTED = "which is not tested for chance, because samples have weights or groups"
NAMES = {
    "raw_softmax": "the model's own softmax",
    "temperature": "temperature scaling",
    "beta_calibration": "beta calibration",
    "quadratic_logistic": "quadratic logistic regression",
    "isotonic": "isotonic regression",
    "constant": "the same probability for all",
    "mean of dropout_variance": "the mean of dropout passes",
    "mean of last_layer_dropout_variance": "the mean of last-layer dropout passes",
    "mean of ensemble_variance": "the mean of the ensemble",
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


def fitted_on(event: EventFit) -> str:
    """Return the probability that the binary methods are fitted on, in a sentence for each."""
    said = []
    for outcome, words in FITTED_ON.items():
        names = [name for name, one in event.baselines.items() if one.fitted_on == outcome]
        if names:
            *others, last = names
            subject = f"{', '.join(others)} and {last} are" if others else f"{last} is"
            said.append(f"{subject} fitted on {words}")
    return " ".join(said)


def verdict_sentence(event: EventFit, folds: int) -> str:
    """Return how good the served probability is, and then what else was tried.

    On the evaluation set, if there is one. It compares no methods if the event holds or fails less
    often than there are ``folds``.
    """
    k, served, verdict = event.k, event.measures[event.served], event.verdict
    if verdict is None or verdict.cross_validation is None:
        return f"Top-{k}: no cross-validation, so methods cannot be compared."
    best, evaluated = verdict.evaluation, verdict.evaluation is not None
    where = "on the evaluation set" if evaluated else "in cross-validation"
    said = [f"Top-{k}, {where}: {_error(served, evaluated=evaluated)}"]
    rarer, outcome = rarer_outcome(served.table)
    if rarer < folds:
        said.append(
            f"Top-{k} {outcome} in {rarer} of {int(served.table.counts.sum()):,} calibration "
            "samples: too rarely to compare methods."
        )
    else:
        method = f"{served.measure}, {served.table.lookup}"
        said.append(_compared(best or verdict.cross_validation, method, 1 + len(event.baselines)))
    return " ".join(said)


def _error(served: MeasureFit, *, evaluated: bool) -> str:
    band = served.evaluation_ece_band if evaluated else served.ece_band
    over_folds = served.scores.get(ERROR)
    mean = None if over_folds is None else over_folds.mean
    error = (served.evaluation or {}).get(ERROR) if evaluated else mean
    if error is None:
        return "the set is too small to measure a calibration error."
    chance = NOT_TESTED if band is None else chance_of(band)
    return f"stated probabilities are off by {percent(error)} on average ({ERROR}), {chance}."


def chance_of(band: ConsistencyBand) -> str:
    """Return whether chance explains a calibration error, in words."""
    more = "no more" if band.consistent else "more"
    return f"{more} than chance explains (up to {percent(band.upper)})"


def _compared(best: BestMethod, served: str, n_methods: int) -> str:
    difference, nll = best.difference, f"{best.nll:.5f}"
    share = "" if difference is None else _share(difference.mean, best.nll)
    chance = "" if difference is None or difference.clear else ", which may be chance"
    if best.best != BINS:
        better = NAMES.get(best.best, best.best)
        better = better[0].upper() + better[1:]
        ours = "" if difference is None else f"; that of the served method ({served}) is {share}"
        return f"{better} has the lowest loss (negative log-likelihood {nll}){ours}{chance}."
    said = f"The served method ({served}) has"
    if best.rival is None or difference is None:
        return f"{said} a loss (negative log-likelihood) of {nll}."
    return (
        f"{said} the lowest loss (negative log-likelihood {nll}) of {n_methods} methods; that of "
        f"{NAMES.get(best.rival, best.rival)} is {share}{chance}."
    )


def _share(mean: float, nll: float) -> str:
    if nll <= 0.0 or mean > nll:
        return "more than twice as high" if mean > 0.0 else "equal"
    return f"{percent(mean / nll)} higher" if mean > 0.0 else "equal"

"""Verdicts on paired differences of scores, and on calibration errors, also in sentences."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Literal, TypeAlias

from howsure.numbers import count, percent
from howsure.report.event import Event, FigureScore
from howsure.report.measure import Baseline, Method
from howsure.report.parts import Phase
from howsure.report.report import Provenance
from howsure.statistics.comparison import PairedDifference
from howsure.statistics.diagnostics.consistency import ConsistencyBand

Verdict: TypeAlias = Literal["same", "tie", "better", "worse"]
# Why a comparison of two calibrations names no better one.
Undecided: TypeAlias = Literal["warnings", "accuracy", "too-rare", "different-sets", "doubtful-set"]

TIES: frozenset[Verdict] = frozenset({"same", "tie"})
LARGER_IS_BETTER = frozenset({"accuracy"})


def verdict(difference: PairedDifference, score: str = "nll") -> Verdict:
    """Return whether a score minus the one it is compared with is clearly better or worse.

    "same" is a difference of exactly 0 without error.
    """
    if difference.mean == 0.0 and not difference.standard_error:
        return "same"
    if not difference.clear:
        return "tie"
    return "better" if (difference.mean > 0) == (score in LARGER_IS_BETTER) else "worse"


def compared_verdict(event: Mapping[str, Any], score: str) -> Verdict | None:
    """Return the verdict on a score of two calibrations; None if it names no better one.

    ``event`` is one of a comparison's ``events``.
    """
    undecided: Undecided | None = event["undecided"]
    of_accuracy = undecided in ("accuracy", "too-rare") and score in LARGER_IS_BETTER
    if undecided is not None and not of_accuracy:
        return None
    return verdict(PairedDifference(**event["differences"][score]), score)


def is_chance(method: Method) -> bool | None:
    """Tell whether a calibration error is not distinguishable from that of a calibrated method.

    None if it was not tested: samples have weights or groups.
    """
    band = band_of(method)
    return None if band is None else band.consistent


def chance_limit(method: Method) -> float:
    """Return the 99 % quantile of that error of a calibrated method; 0 without a band."""
    band = band_of(method)
    return 0.0 if band is None else band.upper


def band_of(method: Method) -> ConsistencyBand | None:
    """Return the band of the calibration error of a method, on the set that judges it."""
    return method.ece_band if method.evaluation is None else method.evaluation_ece_band


def _observed(method: Method) -> float:
    """Return the calibration error that its band is of; without a fit, of all samples together."""
    band = band_of(method)
    return 0.0 if band is None else band.observed


SHOWS_LITTLE = 0.05  # a chance of larger errors than this hides most miscalibration


def calibration_sentences(event: Event, provenance: Provenance) -> Iterator[str]:
    """Yield a sentence on the calibration error before and after, and whether it may be chance."""
    error = event.figures.calibration_error
    if error.raw is None or error.served is None:
        return
    before, after = percent(error.raw.mean), percent(error.served.mean)
    on = _measured_on(event.figures.set, provenance.data, error.served)
    raw = event.baselines["raw_softmax"]
    if is_chance(raw):
        off, limit = percent(_observed(raw)), percent(chance_limit(raw))
        where = _worse_in(raw)
        if where is not None:
            yield (
                "Stated probabilities are clearly better than the model's own, by the loss "
                f"(negative log-likelihood, {where}), although the model's own are off by {off} on "
                f"average, no more than chance explains ({_together(event, provenance)})."
            )
            return
        if chance_limit(raw) > SHOWS_LITTLE:
            yield (
                "Too few samples to tell whether the model's own probabilities are calibrated: "
                f"they are off by {off} on average ({_together(event, provenance)}). By chance "
                f"alone it may be {limit}."
            )
            return
        yield (
            f"The model's own probabilities are already well calibrated: they are off by {off} on "
            f"average, no more than chance explains ({_together(event, provenance)})."
        )
        return
    explained = chance_in_words(event.measures[event.served])
    gains = _gains(event)
    opening = OPENINGS[gains]
    yield (
        f"{opening} probabilities are off by {after} on average after calibration, {before} before "
        f"({on}). {'The remaining' if gains else 'An error of'} {after} is {explained}."
    )


PHASES: dict[Phase, str] = {
    "evaluation": "on the evaluation set",
    "cross_validation": "in cross-validation",
}


def _worse_in(raw: Baseline) -> str | None:
    """Return where the loss of the model's own probabilities is clearly larger; None if nowhere."""
    return next((where for phase, where in PHASES.items() if _loss(raw, phase) == "worse"), None)


def _loss(raw: Baseline, phase: Phase) -> Verdict:
    """Return the verdict on the loss of the model's own probabilities, whatever else was tried."""
    difference = raw.difference.get(phase, {}).get("nll")
    return "tie" if difference is None else verdict(replace(difference, rivals=1))


def chance_in_words(method: Method) -> str:
    """Return whether chance explains the calibration error of a measure or baseline."""
    explained = is_chance(method)
    if explained is None:
        return "not tested for chance, because samples have weights or groups"
    return f"{'no more' if explained else 'more'} than chance explains"


def _together(event: Event, provenance: Provenance) -> str:
    """Return in words on which samples the error of the model's own probabilities was measured."""
    data, scored_set = provenance.data, event.figures.set
    n = data["evaluation_samples"] if scored_set == "evaluation" else data["samples"]
    return f"calibration error on the {scored_set} set, {count(n)} samples"


# By whether the served probabilities are better than the model's own.
OPENINGS = {
    True: "Stated",
    None: "Calibration shows no gain: stated",
    False: "By the loss, calibration makes probabilities worse: stated",
}


def _gains(event: Event) -> bool | None:
    """Return True if the served probabilities are better than the model's own, False if worse.

    None otherwise. The loss decides where it is clearly another one: the error over few samples is
    mostly chance.
    """
    evaluated = event.figures.set == "evaluation"
    loss = _loss(event.baselines["raw_softmax"], "evaluation" if evaluated else "cross_validation")
    if loss not in TIES:
        return loss == "worse"  # the softmax
    error = event.figures.calibration_error
    is_less = error.served is not None and error.raw and error.served.mean < error.raw.mean
    return True if is_less else None


def _measured_on(scored_set: str, data: Mapping[str, Any], score: FigureScore) -> str:
    """Return in words on which samples a calibration error was measured.

    Chance adds to it in proportion to one over the root of their number: in ten folds about three
    times as much as in all samples together.
    """
    if scored_set == "evaluation":
        n_samples = count(data["evaluation_samples"])
        return f"calibration error on the evaluation set, {n_samples} samples"
    folds = score.folds or 1
    return (
        f"calibration error by cross-validation, mean of {folds} folds of "
        f"{count(round(data['samples'] / folds))} samples; such small folds make it look larger "
        "than on a whole evaluation set"
    )

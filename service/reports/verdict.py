"""Verdicts on paired differences of scores, and on calibration errors, also in sentences."""

from collections.abc import Iterator, Mapping
from typing import Any, Literal, TypeAlias

from howsure.statistics.comparison import PairedDifference
from service.reports.numbers import count, percent

Verdict: TypeAlias = Literal["same", "tie", "better", "worse"]
# Why a comparison of two calibrations names no better one.
Undecided: TypeAlias = Literal["warnings", "accuracy", "too-rare", "different-sets", "doubtful-set"]

TIES: frozenset[Verdict] = frozenset({"same", "tie"})
LARGER_IS_BETTER = frozenset({"accuracy"})


def verdict(difference: Mapping[str, Any], score: str = "nll") -> Verdict:
    """Return whether a score minus the one it is compared with is clearly better or worse.

    "same" is a difference of exactly 0 without error.
    """
    if difference["mean"] == 0.0 and not difference["standard_error"]:
        return "same"
    if not PairedDifference(**difference).clear:
        return "tie"
    return "better" if (difference["mean"] > 0) == (score in LARGER_IS_BETTER) else "worse"


def compared_verdict(event: Mapping[str, Any], score: str) -> Verdict | None:
    """Return the verdict on a score of two calibrations; None if it names no better one.

    ``event`` is one of a comparison's ``events``.
    """
    undecided: Undecided | None = event["undecided"]
    of_accuracy = undecided in ("accuracy", "too-rare") and score in LARGER_IS_BETTER
    if undecided is not None and not of_accuracy:
        return None
    return verdict(event["differences"][score], score)


def is_chance(judged: Mapping[str, Any]) -> bool | None:
    """Tell whether a calibration error is not distinguishable from that of a calibrated method.

    None if it was not tested: samples have weights or groups.

    Parameters
    ----------
    judged
        A measure or baseline of a report, with the band of its calibration error.
    """
    band = _band(judged)
    return None if band is None else bool(band["consistent"])


def chance_limit(judged: Mapping[str, Any]) -> float:
    """Return the 99 % quantile of that error of a calibrated method; 0 without a band."""
    return float((_band(judged) or {}).get("upper", 0.0))


def _band(judged: Mapping[str, Any]) -> Mapping[str, Any] | None:
    evaluated = judged["evaluation"] is not None
    band: Mapping[str, Any] | None = judged.get("evaluation_ece_band" if evaluated else "ece_band")
    return band


def _observed(judged: Mapping[str, Any]) -> float:
    """Return the calibration error that its band is of; without a fit, of all samples together."""
    return float((_band(judged) or {})["observed"])


SHOWS_LITTLE = 0.05  # a chance of larger errors than this hides most miscalibration


def calibration_sentences(report: Mapping[str, Any], event: Mapping[str, Any]) -> Iterator[str]:
    """Yield a sentence on the calibration error before and after, and whether it may be chance."""
    error = event["figures"]["calibration_error"]
    if error["raw"] is None or error["served"] is None:
        return
    before, after = percent(error["raw"]["mean"]), percent(error["served"]["mean"])
    on = _measured_on(event["figures"]["set"], report["provenance"]["data"], error["served"])
    raw = event["baselines"]["raw_softmax"]
    if is_chance(raw):
        off, limit = percent(_observed(raw)), percent(chance_limit(raw))
        where = _worse_in(raw)
        if where is not None:
            yield (
                "Stated probabilities are clearly better than the model's own, by the loss "
                f"(negative log-likelihood, {where}), although the model's own are off by {off} on "
                f"average, no more than chance explains ({_together(event, report)})."
            )
            return
        if chance_limit(raw) > SHOWS_LITTLE:
            yield (
                "Too few samples to tell whether the model's own probabilities are calibrated: "
                f"they are off by {off} on average ({_together(event, report)}). By chance alone "
                f"it may be {limit}."
            )
            return
        yield (
            f"The model's own probabilities are already well calibrated: they are off by {off} on "
            f"average, no more than chance explains ({_together(event, report)})."
        )
        return
    explained = chance_in_words(event["measures"][event["served"]])
    gains = _gains(event)
    opening = OPENINGS[gains]
    yield (
        f"{opening} probabilities are off by {after} on average after calibration, {before} before "
        f"({on}). {'The remaining' if gains else 'An error of'} {after} is {explained}."
    )


PHASES = {"evaluation": "on the evaluation set", "cross_validation": "in cross-validation"}


def _worse_in(raw: Mapping[str, Any]) -> str | None:
    """Return where the loss of the model's own probabilities is clearly larger; None if nowhere."""
    return next((where for phase, where in PHASES.items() if _loss(raw, phase) == "worse"), None)


def _loss(raw: Mapping[str, Any], phase: str) -> Verdict:
    """Return the verdict on the loss of the model's own probabilities, whatever else was tried."""
    difference = raw["difference"].get(phase, {}).get("nll")
    return "tie" if difference is None else verdict(difference | {"rivals": 1})


def chance_in_words(judged: Mapping[str, Any]) -> str:
    """Return whether chance explains the calibration error of a measure or baseline."""
    found = is_chance(judged)
    if found is None:
        return "not tested for chance, because samples have weights or groups"
    return f"{'no more' if found else 'more'} than chance explains"


def _together(event: Mapping[str, Any], report: Mapping[str, Any]) -> str:
    """Return in words on which samples the error of the model's own probabilities was measured."""
    data, judged = report["provenance"]["data"], event["figures"]["set"]
    n = data["evaluation_samples"] if judged == "evaluation" else data["samples"]
    return f"calibration error on the {judged} set, {count(n)} samples"


# By whether the served probabilities are better than the model's own.
OPENINGS = {
    True: "Stated",
    None: "Calibration shows no gain: stated",
    False: "By the loss, calibration makes probabilities worse: stated",
}


def _gains(event: Mapping[str, Any]) -> bool | None:
    """Return True if the served probabilities are better than the model's own, False if worse.

    None otherwise. The loss decides where it is clearly another one: the error over few samples is
    mostly chance.
    """
    found = event["baselines"]["raw_softmax"]
    evaluated = event["figures"]["set"] == "evaluation"
    phase = "evaluation" if evaluated else "cross_validation"
    loss = _loss(found, phase)
    if loss not in TIES:
        return loss == "worse"  # the softmax
    error = event["figures"]["calibration_error"]
    return True if error["served"]["mean"] < error["raw"]["mean"] else None


def _measured_on(judged: str, data: Mapping[str, Any], score: Mapping[str, Any]) -> str:
    """Return in words on which samples a calibration error was measured.

    Chance adds to it in proportion to one over the root of their number: in ten folds about three
    times as much as in all samples together.
    """
    if judged == "evaluation":
        n_samples = count(data["evaluation_samples"])
        return f"calibration error on the evaluation set, {n_samples} samples"
    folds = score["folds"]
    return (
        f"calibration error by cross-validation, mean of {folds} folds of "
        f"{count(round(data['samples'] / folds))} samples; such small folds make it look larger "
        "than on a whole evaluation set"
    )

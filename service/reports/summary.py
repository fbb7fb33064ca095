"""The summary of a report: whether the calibration is fit for automatic use, and why."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, TypeAlias

from howsure.statistics.measures import LEARNED
from service.reports.charts import text
from service.reports.numbers import confidence, count, percent, rough_count, share
from service.reports.verdict import is_chance

Status: TypeAlias = Literal["fit", "unfit", "warned", "unknown"]
Report: TypeAlias = Mapping[str, Any]

FIRST = "1"
ALL = 1.0
WARNED = "Fix the findings and calibrate again. Do not rely on any number of it until then."


def summarise(report: Report) -> dict[str, Any]:
    """Return ``status``, ``headline`` and ``sentences`` about the first event of a report.

    A warning outweighs every tested error rate: the labels or the model's outputs are probably
    not what they should be.
    """
    k = FIRST if FIRST in report["events"] else next(iter(report["events"]))
    event = report["events"][k]
    status, headline = _decision(report, event)
    return {
        "event": k,
        "status": status,
        "headline": headline,
        "sentences": [WARNED] if status == "warned" else list(_sentences(report, event, status)),
    }


def is_warned(report: Report) -> bool:
    """Tell whether a calibration has warnings, so that its numbers mean nothing."""
    return any(found["level"] == "warning" for found in report["findings"])


def _sentences(report: Report, event: Report, status: Status) -> Iterator[str]:
    yield from _further_rates(event, status)
    yield from _calibration(report, event)
    yield from _shifts(report["evaluations"])


def _decision(report: Report, event: Report) -> tuple[Status, str]:
    n_warnings = sum(found["level"] == "warning" for found in report["findings"])
    if n_warnings:
        warned = "a warning says" if n_warnings == 1 else f"{n_warnings} warnings say"
        return "warned", f"Do not use this calibration yet: {warned} that something is wrong."
    if "imported" in report["provenance"]["data"]:
        return "unknown", "These bins were imported. There are no samples here to judge them by."
    rates = _rates(event)
    risk = event["figures"]["risk"]
    if risk is not None:
        known = "" if event["served"] != LEARNED else ", estimated"
        return "fit", (
            f"Fit for automatic use on {_answers(risk['coverage'])}: at most "
            f"{share(risk['max_risk'])} of them wrong ({confidence(risk['delta'])} "
            f"confidence{known})."
        )
    if not rates:
        return "unknown", "No error rate was requested, so fitness for automatic use is unknown."
    asked = " or ".join(share(found["target"]["max_risk"]) for found in rates)
    return "unfit", (
        f"Not yet fit for automatic use: an error rate of at most {asked} cannot be proven. "
        f"{missing_labels(rates)}"
    )


def missing_labels(rates: Sequence[Report]) -> str:
    """Return what to do if no requested error rate passed its test."""
    known = [found["labels_missing"] for found in rates if found["labels_missing"] is not None]
    if not known:
        return "More labels would not help. Choose a larger error rate."
    return (
        f"Add about {rough_count(min(known))} labelled samples like these, or choose a larger "
        "error rate."
    )


def _rates(event: Report) -> list[Report]:
    """Return the requested error rates of the served measure."""
    table = event["measures"].get(event["served"]) or {}
    return list(table.get("selective", ()))


def _answers(coverage: float) -> str:
    return "all answers" if coverage == ALL else f"{percent(coverage)} of answers"


def _further_rates(event: Report, status: Status) -> Iterator[str]:
    """Yield a sentence for each other requested error rate."""
    if status != "fit":
        return
    risk = event["figures"]["risk"]
    for found in _rates(event):
        if found["target"]["max_risk"] == risk["max_risk"]:
            continue
        asked = f"an error rate of at most {share(found['target']['max_risk'])}"
        if found["threshold"] is None:
            yield f"A{asked[1:]} cannot be proven. {missing_labels([found])}"
        else:
            yield f"For {asked}, {_answers(found['coverage'])} can be accepted."


def _calibration(report: Report, event: Report) -> Iterator[str]:
    """Yield a sentence on the calibration error before and after, and whether it may be chance."""
    error = event["figures"]["calibration_error"]
    if error["raw"] is None or error["served"] is None:
        return
    before, after = percent(error["raw"]["mean"]), percent(error["served"]["mean"])
    on = _measured_on(event["figures"]["set"], report["provenance"]["data"], error["served"])
    if is_chance(event["baselines"]["raw_softmax"]):
        yield (
            "The model's own probabilities are already well calibrated: they are off by "
            f"{before} on average, no more than chance explains ({on})."
        )
        return
    chance = "may be" if is_chance(event["measures"][event["served"]]) else "is more than"
    helps = error["served"]["mean"] < error["raw"]["mean"]
    opening = "Stated" if helps else "Calibration shows no gain: stated"
    yield (
        f"{opening} probabilities are off by {after} on average after calibration, {before} before "
        f"({on}). The rest {chance} chance."
    )


def _measured_on(judged: str, data: Report, score: Report) -> str:
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


def _shifts(evaluations: Sequence[Report]) -> Iterator[str]:
    for found in evaluations:
        if found["shifted"]:
            yield (
                f"The further set “{text.name(found['name'])}” differs from the calibration set: "
                "these numbers may not hold for it."
            )

"""The summary of a report: whether the calibration is fit for automatic use, and why."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, TypeAlias

from howsure.report.compared_methods import NAMES
from howsure.report.shifts import OPENINGS
from howsure.statistics.fit.verdict import ERROR
from service.reports.charts import text
from service.reports.disproof import MOST_NAMED, details, disproof, disproving_sets
from service.reports.further_sets import UNCLEAR, contradicts, doubted_part, excess, rate_in_words
from service.reports.learned import is_exact_test
from service.reports.numbers import confidence, missing_labels, percent, share
from service.reports.verdict import calibration_sentences
from service.runner.messages.dataset import PAIRS
from service.storage.operating_points import FIRST

Status: TypeAlias = Literal["fit", "unfit", "warned", "disproved", "shifted", "unknown"]
Report: TypeAlias = Mapping[str, Any]

ALL = 1.0
ALIKE = 0.01  # two shares that say nothing of a difference
WARNED = "Fix the findings and calibrate again. Do not rely on any number of it until then."


def summarise(report: Report) -> dict[str, Any]:
    """Return ``status``, ``headline`` and ``sentences`` about the first event of a report.

    A warning outweighs every tested error rate: the labels or the model's outputs are probably
    not what they should be. So does a further set that disproves the calibration.
    """
    k = _first_event(report)
    status, headline = decide(report)
    return {
        "event": k,
        "status": status,
        "headline": headline,
        "sentences": [WARNED] if status == "warned" else list(_sentences(report, k, status)),
    }


def decide(report: Report) -> tuple[Status, str]:
    """Return the status and the headline.

    Of the event, they need the verdict, the served measure, its tested error rates and the risk
    among the figures.
    """
    n_warnings = sum(found["level"] == "warning" for found in report["findings"])
    if n_warnings:
        warned = "a warning says" if n_warnings == 1 else f"{n_warnings} warnings say"
        return "warned", f"Do not use this calibration yet: {warned} that something is wrong."
    k = _first_event(report)
    disproving = disproving_sets(report["evaluations"], k)
    if disproving:
        return "shifted", disproof(disproving, report["events"][k]["accuracy"], k)
    return _by_error_rate(report, k)


def _first_event(report: Report) -> str:
    return FIRST if FIRST in report["events"] else next(iter(report["events"]))


def _sentences(report: Report, k: str, status: Status) -> Iterator[str]:
    event = report["events"][k]
    if status == "shifted":
        # Second, so that a small screen shows it under the headline.
        status, headline = _by_error_rate(report, k)
        yield f"For data like the calibration set: {headline}"
        yield from (details(found, k) for found in disproving_sets(report["evaluations"], k))
    if report.get("earlier_operating_point") is not None:
        yield earlier_point(report["calibration"]["name"], report["earlier_operating_point"])
    if report["not_evaluated"]:
        yield not_evaluated(report["not_evaluated"])
    if status == "fit":
        yield from _without_a_model(report, k)
    point, risk = active_point(report, k), event["figures"]["risk"]
    if point is not None:
        yield _point_in_words(point)
    elif status == "fit" and risk["evaluation"] is not None:
        seen = risk["evaluation"]
        yield (
            f"On the evaluation set, {percent(seen['coverage'])} of answers are accepted: "
            f"{rate_in_words(seen)}{excess(seen, risk['max_risk'])}."
        )
    yield from _further_rates(report, k, status)
    yield from calibration_sentences(report, event)
    yield from _further_sets(report, k, status)


def _without_a_model(report: Report, k: str) -> Iterator[str]:
    """Yield that the promised error rate says little, if always naming one class keeps it, too."""
    data, promised = report["provenance"]["data"], promised_rate(report, k)
    # They do not tell the shares of classes that weights describe.
    counts = None if "weight" in data.get("design", ()) else data.get("class_counts")
    if k != FIRST or promised is None or not counts or data["kind"] == PAIRS:
        return
    most = max(range(len(counts)), key=counts.__getitem__)
    errors = 1.0 - counts[most] / sum(counts)
    if errors <= promised["max_risk"]:
        name = text.name(report["provenance"]["config"]["classes"][most])
        yield (
            f"Always answering “{name}” would be wrong in {percent(errors)}: the error rate says "
            "little about the other classes. See which errors are accepted, by class."
        )


def earlier_point(name: str, found: Report) -> str:
    """Return that an earlier version has an operating point, which this one does not follow."""
    target = found["chosen_by"].get("max_risk")
    promise = "" if target is None else f"at most {share(target)} wrong, "
    return (
        f"{name}@{found['version']} has the operating point “{text.name(found['name'])}” "
        f"({promise}by {text.name(found['author'])}). This version does not follow it: activate "
        f"one here before callers of “{name}” rely on it."
    )


def not_evaluated(names: Sequence[str]) -> str:
    """Return that further sets are known of other versions of the name only."""
    sets = text.enumerated([f"“{text.name(name)}”" for name in names[:MOST_NAMED]])
    more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
    return (
        f"This version was not evaluated on {sets}{more}, as other versions were: it may be no "
        "better there."
    )


def _by_error_rate(report: Report, k: str) -> tuple[Status, str]:
    """Return the status and the headline by the tested error rate."""
    if "imported" in report["provenance"]["data"]:
        return "unknown", "These bins were imported. There are no samples here to judge them by."
    event = report["events"][k]
    point, risk = active_point(report, k), promised_rate(report, k)
    if risk is not None:
        return _by_promise(report, event, point, risk)
    if point is not None and event["figures"]["risk"] is not None:
        return "unknown", (
            f"The error rate of the active operating point “{point['name']}” was not tested: it "
            f"accepts {_answers(point['consequences']['coverage'])}, but was not chosen by an "
            "error rate."
        )
    rates = _rates(event)
    if not rates:
        return "unknown", "No error rate was requested, so fitness for automatic use is unknown."
    asked = " or ".join(share(found["target"]["max_risk"]) for found in rates)
    return "unfit", (
        f"Not yet fit for automatic use: an error rate of at most {asked} cannot be proven. "
        f"{labels_advice(event)}"
    )


def _by_promise(
    report: Report, event: Report, point: Report | None, risk: Report
) -> tuple[Status, str]:
    """Return the status and the headline where an error rate was tested."""
    using = "" if point is None else f" with the active operating point “{point['name']}”"
    if contradicts(risk["evaluation"], risk["max_risk"]):
        return "disproved", (
            f"Not fit for automatic use{using}: on the evaluation set, "
            f"{rate_in_words(risk['evaluation'], accepted=' accepted answers')}. "
            f"At most {share(risk['max_risk'])} was promised."
        )
    if (event["verdict"] or {}).get("outdone"):
        return "unfit", (
            f"Not fit for automatic use: {NAMES[event['verdict']['best']]} states far better "
            "probabilities on the same samples. Calibrate with the default measures and lookup, or "
            "with more samples."
        )
    data = report["provenance"]["data"]
    known = "" if is_exact_test(event["assurance"], data.get("design")) else "about "
    # An evaluation set that the model has not seen would have shown it.
    unseen = data.get("evaluation_samples") is None
    return "fit", (
        f"Fit for automatic use{using} on {_answers(risk['coverage'])}: at most "
        f"{share(risk['max_risk'])} of them wrong ({known}{confidence(risk['delta'])} "
        f"confidence){', if the model was not trained on these samples' * unseen}."
    )


def active_point(report: Report, k: str) -> Report | None:
    """Return the active operating point, which is one of Top-1, if its effect is known."""
    point: Report | None = report["operating_point"]
    is_known = point is not None and point.get("consequences") is not None
    return point if is_known and k == FIRST else None


def _point_in_words(point: Report) -> str:
    """Return what the active operating point accepts, on each set."""
    seen = point["consequences"]
    judged = _on_evaluation(seen.get("evaluation"), point["chosen_by"].get("max_risk"))
    return (
        f"The active operating point “{point['name']}” accepts {_answers(seen['coverage'])}: on "
        f"the calibration set, {rate_in_words(seen)}{judged}."
    )


def promised_rate(report: Report, k: str) -> Report | None:
    """Return the tested error rate that the verdict is about.

    It is that of the active operating point, where one is active.
    """
    point = active_point(report, k)
    if point is None:
        found: Report | None = report["events"][k]["figures"]["risk"]
        return found
    if "max_risk" not in point["chosen_by"]:
        return None
    seen = point["consequences"]
    return {
        **point["chosen_by"],
        "coverage": seen["coverage"],
        "evaluation": seen.get("evaluation"),
    }


def labels_advice(event: Report) -> str:
    """Return what to do if no requested error rate of an event passed its test."""
    rates = _rates(event)
    return missing_labels(
        {found["target"]["max_risk"]: found["labels_missing"] for found in rates},
        event["accuracy"],
        # Imported tables do not have it.
        out_of_reach=all(found.get("out_of_reach", False) for found in rates),
    )


def _rates(event: Report) -> list[Report]:
    """Return the requested error rates of the served measure."""
    table = event["measures"].get(event["served"]) or {}
    return list(table.get("selective", ()))


def _answers(coverage: float) -> str:
    return "all answers" if coverage == ALL else f"{percent(coverage)} of answers"


def _on_evaluation(found: Report | None, max_risk: float | None) -> str:
    """Return the end of a sentence on the evaluation set; empty without one."""
    if found is None:
        return ""
    return f"; on the evaluation set, {rate_in_words(found)}{excess(found, max_risk)}"


def _further_rates(report: Report, k: str, status: Status) -> Iterator[str]:
    """Yield a sentence for each other requested error rate."""
    event, promised = report["events"][k], promised_rate(report, k) or {}
    if event["figures"]["risk"] is None and status != "fit":
        return
    for found in _rates(event):
        max_risk = found["target"]["max_risk"]
        if max_risk == promised.get("max_risk"):
            continue
        asked = f"an error rate of at most {share(max_risk)}"
        if found["threshold"] is None:
            yield f"A{asked[1:]} cannot be proven with these labels."
            continue
        judged = _on_evaluation(found.get("evaluation"), max_risk)
        yield f"For {asked}, {_answers(found['coverage'])} can be accepted{judged}."


def _further_sets(report: Report, k: str, status: Status) -> Iterator[str]:
    promised = promised_rate(report, k) if status == "fit" else None
    for found in report["evaluations"]:
        name, event = text.name(found["name"]), found["events"].get(k, {})
        doubted = doubted_part(found)
        if doubted is not None:
            why = found["findings"][0]["message"]
            yield f"{doubted.capitalize()} of the further set “{name}” look wrong: {why}"
            continue
        if event.get("disproves"):
            continue
        yield from _difference(found, event)
        for one in event.get("accepted", ()):
            more = excess(one, one["target"]["max_risk"])
            if more and promised and _are_equal(one["target"], promised):
                rate = rate_in_words(one, accepted=" accepted answers")
                yield f"On the further set “{name}”, {rate}{more}."
        if event.get("unpromised") is not None:
            own = event["unpromised"]
            yield (
                f"On the further set “{name}”, “{own['operating_point']}” accepts "
                f"{_answers(own['coverage'])}: {rate_in_words(own)}."
            )


# What answers of a further set are, by the verdict on the event.
MISCALIBRATED = {
    OPENINGS["worse"]: "right less often than stated",
    OPENINGS["miscalibrated"]: "not right as often as stated",
    OPENINGS["better"]: "right more often than stated",
}


def _difference(found: Report, event: Report) -> Iterator[str]:
    """Yield what a shifted set, or one that may be, means for the numbers of the report."""
    name, verdict = text.name(found["name"]), event.get("verdict")
    if verdict in MISCALIBRATED or verdict == UNCLEAR:
        right, stated, off = event["accuracy"], event["stated"], event["scores"].get(ERROR)
        shares = f"{percent(right)} are right, {percent(stated)} stated"
        if off is not None and abs(right - stated) < ALIKE:
            shares = f"stated probabilities are off by {percent(off)} on average"
    if verdict in MISCALIBRATED:
        yield f"On the further set “{name}”, answers are {MISCALIBRATED[verdict]}: {shares}."
    elif found["shifted"]:
        yield (
            f"The further set “{name}” differs from the calibration set: these numbers may not "
            "hold for it."
        )
    elif verdict == UNCLEAR:
        yield f"Whether these numbers hold for the further set “{name}” is unclear: {shares}."


def _are_equal(target: Report, promised: Report) -> bool:
    return all(target[name] == promised[name] for name in ("max_risk", "delta"))

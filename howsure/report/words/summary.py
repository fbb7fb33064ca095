"""The summary of a report: whether the calibration is fit for automatic use, and why."""

from collections.abc import Iterator, Mapping, Sequence

from howsure.numbers import confidence, missing_labels, percent, share
from howsure.report.further_set import Counts, FurtherEvent, FurtherSet
from howsure.report.further_sets import (
    UNCLEAR,
    contradicts,
    doubted_part_of,
    excess,
    rate_in_words,
)
from howsure.report.parts import FIRST
from howsure.report.report import ActivePoint, Consequences, EarlierPoint, Report, Status, Summary
from howsure.report.standing import Promise, Standing
from howsure.report.words import text
from howsure.report.words.compared_methods import NAMES
from howsure.report.words.disproof import MOST_NAMED, details, disproof, disproving_sets
from howsure.report.words.learned import is_exact_test
from howsure.report.words.shifts import OPENINGS
from howsure.report.words.verdict import calibration_sentences
from howsure.statistics.fit.verdict import ERROR
from howsure.statistics.selective import SelectiveResult

ALL = 1.0
ALIKE = 0.01  # two shares that say nothing of a difference
PAIRS = "pairs"  # the kind of sets of scores of two answers each
WARNED = "Fix the findings and calibrate again. Do not rely on any number of it until then."


def summarise(report: Report) -> Summary:
    """Return the decision about the first event of a report, and what else to know.

    A warning outweighs every tested error rate: the labels or the model's outputs are probably
    not what they should be. So does a further set that disproves the calibration.
    """
    standing = Standing.of(report)
    status, headline = decide(standing)
    return Summary(
        event=standing.k,
        status=status,
        headline=headline,
        sentences=[WARNED] if status == "warned" else list(_sentences(report, standing, status)),
    )


def decide(standing: Standing) -> tuple[Status, str]:
    """Return the status and the headline."""
    n_warnings = standing.n_warnings
    if n_warnings:
        warned = "a warning says" if n_warnings == 1 else f"{n_warnings} warnings say"
        return "warned", f"Do not use this calibration yet: {warned} that something is wrong."
    disproving = disproving_sets(standing.evaluations, standing.k)
    if disproving:
        return "shifted", disproof(disproving, standing.accuracy, standing.k)
    return _by_error_rate(standing)


def _sentences(report: Report, standing: Standing, status: Status) -> Iterator[str]:
    k, event = standing.k, report.events[standing.k]
    if status == "shifted":
        # Second, so that a small screen shows it under the headline.
        status, headline = _by_error_rate(standing)
        yield f"For data like the calibration set: {headline}"
        yield from (details(further, k) for further in disproving_sets(report.traffic, k))
    if report.earlier_operating_point is not None:
        yield earlier_point(report.calibration.name, report.earlier_operating_point)
    if report.not_evaluated:
        yield not_evaluated(report.not_evaluated)
    if status == "fit":
        yield from _without_a_model(report, standing)
    if standing.accepted is not None:
        yield _point_in_words(*standing.accepted)
    elif status == "fit" and standing.risk is not None and standing.risk.evaluation is not None:
        seen = standing.risk.evaluation
        yield (
            f"On the evaluation set, {percent(seen.coverage)} of answers are accepted: "
            f"{rate_in_words(seen)}{excess(seen, standing.risk.max_risk)}."
        )
    yield from _further_rates(standing, status)
    yield from calibration_sentences(event, report.provenance)
    promised = standing.promised if status == "fit" else None
    for further in report.traffic:
        yield from _further_set(further, k, promised)


def _without_a_model(report: Report, standing: Standing) -> Iterator[str]:
    """Yield that the promised error rate says little, if always naming one class keeps it, too."""
    data, promised = standing.data, standing.promised
    # They do not tell the shares of classes that weights describe.
    counts = None if "weight" in data.get("design", ()) else data.get("class_counts")
    if standing.k != FIRST or promised is None or not counts or data["kind"] == PAIRS:
        return
    most = max(range(len(counts)), key=counts.__getitem__)
    errors = 1.0 - counts[most] / sum(counts)
    if errors <= promised.max_risk:
        name = text.name(report.provenance.config["classes"][most])
        yield (
            f"Always answering “{name}” would be wrong in {percent(errors)}: the error rate says "
            "little about the other classes. See which errors are accepted, by class."
        )


def earlier_point(name: str, point: EarlierPoint) -> str:
    """Return that an earlier version has an operating point, which this one does not follow."""
    target = point.chosen_by.get("max_risk")
    promise = "" if target is None else f"at most {share(target)} wrong, "
    return (
        f"{name}@{point.version} has the operating point “{text.name(point.name)}” "
        f"({promise}by {text.name(point.author)}). This version does not follow it: activate "
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


def _by_error_rate(standing: Standing) -> tuple[Status, str]:
    """Return the status and the headline by the tested error rate."""
    if "imported" in standing.data:
        return "unknown", "These bins were imported. There are no samples here to judge them by."
    if standing.promised is not None:
        return _by_promise(standing, standing.promised)
    if standing.accepted is not None and standing.risk is not None:
        point, seen = standing.accepted
        return "unknown", (
            f"The error rate of the active operating point “{point.name}” was not tested: it "
            f"accepts {_answers(seen.coverage)}, but was not chosen by an error rate."
        )
    if not standing.selective:
        return "unknown", "No error rate was requested, so fitness for automatic use is unknown."
    rates = " or ".join(share(one.target.max_risk) for one in standing.selective)
    return "unfit", (
        f"Not yet fit for automatic use: an error rate of at most {rates} cannot be proven. "
        f"{labels_advice(standing.selective, standing.accuracy)}"
    )


def _by_promise(standing: Standing, promised: Promise) -> tuple[Status, str]:
    """Return the status and the headline where an error rate was tested."""
    using, verdict = "", standing.verdict
    if standing.accepted is not None:
        using = f" with the active operating point “{standing.accepted[0].name}”"
    if promised.evaluation is not None and contradicts(promised.evaluation, promised.max_risk):
        return "disproved", (
            f"Not fit for automatic use{using}: on the evaluation set, "
            f"{rate_in_words(promised.evaluation, accepted=' accepted answers')}. "
            f"At most {share(promised.max_risk)} was promised."
        )
    if verdict is not None and verdict.outdone:
        return "unfit", (
            f"Not fit for automatic use: {NAMES[verdict.best or '']} states far better "
            "probabilities on the same samples. Calibrate with the default measures and lookup, or "
            "with more samples."
        )
    hedge = "" if is_exact_test(standing.assurance, standing.data.get("design")) else "about "
    # An evaluation set that the model has not seen would have shown it.
    unseen = standing.data.get("evaluation_samples") is None
    return "fit", (
        f"Fit for automatic use{using} on {_answers(promised.coverage)}: at most "
        f"{share(promised.max_risk)} of them wrong ({hedge}{confidence(promised.delta)} "
        f"confidence){', if the model was not trained on these samples' * unseen}."
    )


def active_point(report: Report, k: str) -> ActivePoint | None:
    """Return the active operating point, which is one of Top-1, if its effect is known."""
    point = report.operating_point
    is_known = point is not None and point.consequences is not None
    return point if is_known and k == FIRST else None


def _point_in_words(point: ActivePoint, seen: Consequences) -> str:
    """Return what the active operating point accepts, on each set."""
    on_evaluation = _on_evaluation(seen.evaluation, point.chosen_by.get("max_risk"))
    return (
        f"The active operating point “{point.name}” accepts {_answers(seen.coverage)}: on "
        f"the calibration set, {rate_in_words(seen)}{on_evaluation}."
    )


def labels_advice(selective: Sequence[SelectiveResult], accuracy: float) -> str:
    """Return what to do if no requested error rate of an event passed its test."""
    return missing_labels(
        {one.target.max_risk: one.labels_missing for one in selective},
        accuracy,
        out_of_reach=all(one.out_of_reach for one in selective),
    )


def _answers(coverage: float) -> str:
    return "all answers" if coverage == ALL else f"{percent(coverage)} of answers"


def _on_evaluation(counts: Counts | None, max_risk: float | None) -> str:
    """Return the end of a sentence on the evaluation set; empty without one."""
    if counts is None:
        return ""
    return f"; on the evaluation set, {rate_in_words(counts)}{excess(counts, max_risk)}"


def _further_rates(standing: Standing, status: Status) -> Iterator[str]:
    """Yield a sentence for each other requested error rate."""
    promised = standing.promised
    if standing.risk is None and status != "fit":
        return
    for one in standing.selective:
        max_risk = one.target.max_risk
        if promised is not None and max_risk == promised.max_risk:
            continue
        rate = f"an error rate of at most {share(max_risk)}"
        if one.threshold is None or one.coverage is None:
            yield f"A{rate[1:]} cannot be proven with these labels."
            continue
        on_evaluation = _on_evaluation(one.evaluation, max_risk)
        yield f"For {rate}, {_answers(one.coverage)} can be accepted{on_evaluation}."


def _further_set(further: FurtherSet, k: str, promised: Promise | None) -> Iterator[str]:
    name, event = text.name(further.name), further.events.get(k)
    doubted = doubted_part_of(further)
    if doubted is not None:
        why = further.findings[0].message
        yield f"{doubted.capitalize()} of the further set “{name}” look wrong: {why}"
        return
    if event is None or event.disproves:
        return
    yield from _difference(further, event)
    for one in event.accepted:
        more = excess(one, one.target["max_risk"])
        if more and promised is not None and _is_of(one.target, promised):
            rate = rate_in_words(one, accepted=" accepted answers")
            yield f"On the further set “{name}”, {rate}{more}."
    own = event.unpromised
    if own is not None:
        yield (
            f"On the further set “{name}”, “{own.operating_point}” accepts "
            f"{_answers(own.coverage)}: {rate_in_words(own)}."
        )


# What answers of a further set are, by the verdict on the event.
MISCALIBRATED = {
    OPENINGS["worse"]: "right less often than stated",
    OPENINGS["miscalibrated"]: "not right as often as stated",
    OPENINGS["better"]: "right more often than stated",
}


def _difference(further: FurtherSet, event: FurtherEvent) -> Iterator[str]:
    """Yield what a shifted set, or one that may be, means for the numbers of the report."""
    name, verdict = text.name(further.name), event.verdict
    if verdict in MISCALIBRATED or verdict == UNCLEAR:
        right, stated = event.accuracy or 0.0, event.stated or 0.0
        off = (event.scores or {}).get(ERROR)
        shares = f"{percent(right)} are right, {percent(stated)} stated"
        if off is not None and abs(right - stated) < ALIKE:
            shares = f"stated probabilities are off by {percent(off)} on average"
    if verdict in MISCALIBRATED:
        yield f"On the further set “{name}”, answers are {MISCALIBRATED[verdict]}: {shares}."
    elif further.shifted:
        yield (
            f"The further set “{name}” differs from the calibration set: these numbers may not "
            "hold for it."
        )
    elif verdict == UNCLEAR:
        yield f"Whether these numbers hold for the further set “{name}” is unclear: {shares}."


def _is_of(target: Mapping[str, float], promised: Promise) -> bool:
    return target == {"max_risk": promised.max_risk, "delta": promised.delta}

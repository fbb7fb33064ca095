"""Charts of calibration: reliability diagrams, by class as well, and confidence."""

from howsure.figures.figure import Column, Figure, Table, served_events
from howsure.pictures.charts import calibration
from howsure.report.event import Event
from howsure.report.located import Located
from howsure.report.report import Report
from howsure.report.words import text
from howsure.statistics.diagnostics.reliability import (
    N_RANGES,
    ClassReliability,
    Reliability,
    ReliabilityRow,
)

Groups = Reliability | ClassReliability
RELIABILITY = "reliability"
CLASS_1 = "class-1"
CORRECT = "correct"
SETS = {
    "evaluation": "samples of the evaluation set",
    "half": "samples, one half of the calibration set; the other half was used for fitting",
}


def _columns(first: str, outcome: str = CORRECT) -> tuple[Column, ...]:
    """Return the columns of groups; those of the outcome are called so."""
    return (
        Column(first, str, "group"),
        Column("stated probability", text.percent, "said"),
        Column(f"share that was {outcome}", text.percent, "hit_rate"),
        Column("from", text.percent, "lower"),
        Column("to", text.percent, "upper"),
        Column(outcome, text.count, "hits"),
        Column("samples", text.count, "count"),
    )


def reliability_figures(report: Report) -> list[Figure]:
    """Return one figure per event that was judged on held-out samples, and one of class 1."""
    classes = report.provenance.config.get("classes") or []
    figures = []
    for k, event, table, at in served_events(report):
        if table.reliability:
            groups, located = table.reliability, at["reliability"]
            title = _reliability_title(k, event)
            figures.append(_reliability_figure(k, title, CORRECT, groups, groups, located))
            own = groups.class_1
            if own is not None:
                title = _class_1_title(own, _class_name(1, classes))
                figures.append(
                    _reliability_figure(CLASS_1, title, "class 1", groups, own, located["class_1"])
                )
    return figures


def _class_1_title(own: ClassReliability, name: str) -> str:
    before, after = (own.scores[side]["ece_equal_mass"] for side in ("before", "after"))
    return (
        f"P(class 1), “{name}”: off by {text.percent(before)} on average before calibration "
        f"and {text.percent(after)} after"
    )


def _reliability_figure(
    key: str,
    title: str,
    outcome: str,
    about: Reliability,
    groups: Groups,
    located: Located,
) -> Figure:
    drawn = [
        (side, row, located[side][at])
        for side in ("before", "after")
        for at, row in enumerate(getattr(groups, side))
        if row.count
    ]
    return Figure(
        chart=RELIABILITY,
        key=key,
        title=title,
        note=f"{text.count(about.n_samples)} {SETS[about.held_out]}. On the dashed line the "
        f"stated probability is the share that was {outcome}. Lines are "
        f"{text.requested(about.level)} intervals; larger points stand for more samples."
        f"{_scores_after(groups)}",
        picture=calibration.reliability(
            *([row for side, row, _ in drawn if side == one] for one in ("before", "after")),
            outcome=outcome,
        ),
        table=Table.of(_columns("", outcome), [({"group": side}, at) for side, _, at in drawn]),
    )


def _scores_after(groups: Groups) -> str:
    """Return scores after calibration, of class 1 alone; those of events are elsewhere."""
    scores = groups.scores["after"] if isinstance(groups, ClassReliability) else {}
    named = {"Brier score": scores.get("brier"), "AUROC": scores.get("auroc")}
    return "".join(f" {name} {value:.3f}." for name, value in named.items() if value is not None)


def _reliability_title(k: str, event: Event) -> str:
    error = event.figures.calibration_error
    if error.raw is None or error.served is None:
        return f"{text.event(k)}: stated probability and share that was correct"
    on = "" if event.figures.set == "evaluation" else ", by cross-validation"
    return (
        f"{text.event(k)}: stated probabilities are off by {text.percent(error.raw.mean)} on "
        f"average before calibration and {text.percent(error.served.mean)} after{on}"
    )


CONFIDENCE = "confidence"
CONFIDENCE_COLUMNS = (
    Column("mean confidence", text.percent, "said"),
    Column("share that was correct", text.percent, "hit_rate"),
    Column("correct", text.count, "hits"),
    Column("samples", text.count, "count"),
)


def confidence_figures(report: Report) -> list[Figure]:
    """Return the histogram of the model's own confidence for each event judged on held-out samples.

    The ranges are those of `ece_15`.
    """
    return [
        _confidence_figure(k, table.reliability, at["reliability"]["before"])
        for k, _, table, at in served_events(report)
        if table.reliability
    ]


def _confidence_figure(k: str, reliability: Reliability, located: Located) -> Figure:
    rows = [row for row in reliability.before if row.count]
    n_samples = sum(row.count for row in rows)
    confidence = sum(row.said * row.count for row in rows) / max(n_samples, 1)
    accuracy = sum(row.hits for row in rows) / max(n_samples, 1)
    return Figure(
        chart=CONFIDENCE,
        key=k,
        title=f"{text.event(k)}: mean confidence of the model {text.percent(confidence)}, accuracy "
        f"{text.percent(accuracy)}",
        note=f"Histogram of the model's own confidence before calibration, of "
        f"{text.count(reliability.n_samples)} {SETS[reliability.held_out]}.",
        picture=calibration.confidence_histogram(rows, N_RANGES),
        table=Table.of(CONFIDENCE_COLUMNS, [({}, at) for at in located if at["count"]]),
    )


CLASSES = "classes"
MAX_CLASSES = 10


def class_figures(report: Report) -> list[Figure]:
    """Return one figure per event with the 10 classes that are furthest off."""
    classes = report.provenance.config.get("classes") or []
    return [
        _class_figure(k, table.reliability, at["reliability"]["classes"], classes)
        for k, _, table, at in served_events(report)
        if table.reliability and table.reliability.classes
    ]


def _class_figure(k: str, reliability: Reliability, located: Located, classes: list[str]) -> Figure:
    rows = [row for row in reliability.classes[:MAX_CLASSES] if row.count]
    at = [row for row in located if row["count"]][: len(rows)]
    names = [_class_name(row.group, classes) for row in rows]
    n_classes = len(reliability.classes)
    drawn = f"The worst {len(rows)} of {n_classes}" if n_classes > len(rows) else f"All {n_classes}"
    return Figure(
        chart=CLASSES,
        key=k,
        title=_class_title(k, names, rows),
        note=f"{drawn} predicted classes, after calibration. Points: share that was correct, with "
        f"{text.requested(reliability.level)} intervals, of "
        f"{text.count(reliability.n_samples)} {SETS[reliability.held_out]}. "
        "Upright ticks: mean stated probability.",
        picture=calibration.classes(names, rows),
        table=Table.of(
            _columns("predicted class"),
            [({"group": name}, row) for name, row in zip(names, at, strict=True)],
        ),
    )


def _class_name(group: int, classes: list[str]) -> str:
    return text.name(classes[group]) if group < len(classes) else f"class {group}"


def _class_title(k: str, names: list[str], rows: list[ReliabilityRow]) -> str:
    if not rows:
        return f"{text.event(k)}: no predicted class has samples to judge it by"
    name, worst = names[0], rows[0]
    if worst.lower <= worst.said <= worst.upper:
        return (
            f"{text.event(k)}: the stated probability of every predicted class is within "
            "the interval of the share that was correct"
        )
    return (
        f"{text.event(k)}: “{name}” is furthest off, stated "
        f"{text.percent(worst.said)}, correct {text.percent(worst.hit_rate)} of "
        f"{text.count(worst.count)}"
    )

"""Charts of calibration: reliability diagrams, by class as well, and the error before and after."""

from typing import Any

from service.reports.charts import text
from service.reports.charts.figure import (
    Column,
    Figure,
    Report,
    Row,
    Served,
    Table,
    served_events,
)
from service.reports.located import Located

RELIABILITY = "reliability"
ERROR = "ece_15"  # the only calibration error that baselines have too
SETS = {
    "evaluation": "samples of the evaluation set",
    "half": "samples of the calibration set that fitted nothing",
}
GROUP_COLUMNS = (
    Column("said", text.percent),
    Column("came true", text.percent),
    Column("from", text.percent),
    Column("to", text.percent),
    Column("hits", text.count),
    Column("samples", text.count),
)
RELIABILITY_COLUMNS = (Column("", str), *GROUP_COLUMNS)


def _group_cells(group: Located) -> list[Located]:
    names = ("said", "hit_rate", "lower", "upper", "hits", "count")
    return [group[name] for name in names]


def reliability_figures(report: Report) -> list[Figure]:
    """Return one figure per event that was judged on held-out samples."""
    return [
        _reliability_figure(k, event, table["reliability"], at["reliability"])
        for k, event, table, at in served_events(report)
        if table.get("reliability")
    ]


def _reliability_figure(k: str, event: Row, found: Row, shown: Located) -> Figure:
    drawn = [
        (side, row, shown[side][at])
        for side in ("before", "after")
        for at, row in enumerate(found[side])
        if row["count"]
    ]
    rows = [{**row, "_side": side} for side, row, _ in drawn]
    return Figure(
        chart=RELIABILITY,
        key=k,
        title=_reliability_title(k, event),
        note=f"{text.count(found['n_samples'])} {SETS[found['held_out']]}. Lines are "
        f"{text.asked(found['level'])} intervals; larger points are of more samples; on the "
        "dashes what was said came true. Both axes grow as roots towards 100 %.",
        data={"rows": rows},
        table=Table(RELIABILITY_COLUMNS, [[side, *_group_cells(at)] for side, _, at in drawn]),
        parameters={"most": _most(rows)},
    )


def _reliability_title(k: str, event: Row) -> str:
    served, raw = event["measures"][event["served"]], event["baselines"].get("raw_softmax")
    after, before = _calibration_error(served), None if raw is None else _calibration_error(raw)
    if after is None or before is None:
        return f"{text.event(k)}: what was said, and what came true"
    return (
        f"{text.event(k)}: what is said is off by {text.percent(before)} on average before "
        f"calibration, by {text.percent(after)} after"
    )


def _calibration_error(found: Row) -> float | None:
    """Return `ece_15`: on the evaluation set, or else the mean over the folds."""
    scores = found["evaluation"]
    error: float | None = (
        found["scores"].get(ERROR, {}).get("mean") if scores is None else scores.get(ERROR)
    )
    return error


def _most(rows: list[dict[str, Any]]) -> float:
    """Return the share of misses where the axes begin: a tenth that leaves every point inside."""
    lowest = min((min(row["said"], row["hit_rate"]) for row in rows), default=0.0)
    return max(1.0 - int(10 * lowest) / 10, 0.1)


CLASSES = "classes"
MAX_CLASSES = 20
CLASSES_COLUMNS = (Column("predicted class", str), *GROUP_COLUMNS)


def class_figures(report: Report) -> list[Figure]:
    """Return one figure per event with the 20 classes that are furthest off."""
    classes = report["provenance"]["config"].get("classes") or []
    return [
        _class_figure(k, table["reliability"], at["reliability"]["classes"], classes)
        for k, _, table, at in served_events(report)
        if table.get("reliability")
    ]


def _class_figure(k: str, found: Row, shown: Located, classes: list[str]) -> Figure:
    rows: list[Row] = [
        {**row, "_class": _class_name(row["group"], classes), "_place": at}
        for at, row in enumerate(found["classes"][:MAX_CLASSES])
        if row["count"]
    ]
    n_classes = len(found["classes"])
    drawn = f"The worst {len(rows)} of {n_classes}" if n_classes > len(rows) else f"All {n_classes}"
    return Figure(
        chart=CLASSES,
        key=k,
        title=_class_title(k, rows),
        note=f"{drawn} predicted classes. Points: how often it came true, with "
        f"{text.asked(found['level'])} intervals, of {text.count(found['n_samples'])} "
        f"{SETS[found['held_out']]}; upright ticks: what was said.",
        data={"rows": [{**row, "_label": _class_label(row)} for row in rows]},
        table=Table(
            CLASSES_COLUMNS,
            [[row["_class"], *_group_cells(shown[row["_place"]])] for row in rows],
        ),
    )


def _class_name(group: int, classes: list[str]) -> str:
    return text.name(classes[group]) if group < len(classes) else f"class {group}"


def _class_label(row: Row) -> str:
    return f"{row['_class']}  ({text.count(row['count'])})"


def _class_title(k: str, rows: list[Row]) -> str:
    if not rows:
        return f"{text.event(k)}: no predicted class has samples to judge it by"
    worst = rows[0]
    if worst["lower"] <= worst["said"] <= worst["upper"]:
        return (
            f"{text.event(k)}: each predicted class keeps what is said, as far as its samples tell"
        )
    return (
        f"{text.event(k)}: furthest off is “{worst['_class']}”, said "
        f"{text.percent(worst['said'])}, true {text.percent(worst['hit_rate'])} of "
        f"{text.count(worst['count'])}"
    )


BEFORE_AFTER = "before_after"
BEFORE_AFTER_COLUMNS = (
    Column("event", str),
    Column("before, as the softmax says", text.percent),
    Column("after", text.percent),
    Column("by chance alone, over the own bins, at most", text.percent),
)


def before_after_figures(report: Report) -> list[Figure]:
    """Return one figure of all events, or none without scores."""
    rows = [
        row
        for served in served_events(report)
        if (row := _before_after_row(served, Located(report)["events"][served.k])) is not None
    ]
    if not rows:
        return []
    changes = [
        f"{row['event']} from {text.percent(row['before'])} to {text.percent(row['after'])}"
        for row in rows
    ]
    on = "on the evaluation set" if rows[0]["evaluated"] else "by cross-validation"
    return [
        Figure(
            chart=BEFORE_AFTER,
            key="all",
            title=f"Calibration error, {text.enumerated(changes)}",
            note=f"Mean gap between probability and frequency over 15 bins, {on}. Grey: the error "
            "of a calibrated table over its own bins, by chance alone, in 99 of 100 cases.",
            data={
                "rows": [
                    {name: row[name] for name in ("event", "before", "after", "chance")}
                    for row in rows
                ]
            },
            table=Table(BEFORE_AFTER_COLUMNS, [[row["event"], *row["cells"]] for row in rows]),
        )
    ]


def _before_after_row(served: Served, event: Located) -> Row | None:
    raw, table = served.event["baselines"].get("raw_softmax"), served.table
    before, after = None if raw is None else _calibration_error(raw), _calibration_error(table)
    if before is None or after is None:
        return None
    evaluated = table["evaluation"] is not None
    band = "evaluation_ece_band" if evaluated else "ece_band"

    def error_of(found: Located) -> Located:
        return found["evaluation"][ERROR] if evaluated else found["scores"][ERROR]["mean"]

    return {
        "event": text.event(served.k),
        "evaluated": evaluated,
        "before": before,
        "after": after,
        "chance": (table.get(band) or {}).get("upper"),
        "cells": [
            error_of(event["baselines"]["raw_softmax"]),
            error_of(served.at),
            served.at[band]["upper"],
        ],
    }

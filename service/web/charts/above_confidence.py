"""Count and accuracy of what lies above a confidence: Ovadia et al., Figure 3."""

from typing import Any

from service.web.charts import words
from service.web.charts.figure import Column, Figure, Report, Row, Table, pointer
from service.web.charts.histogram import FURTHER, KNOWN
from service.web.charts.palette import colour

NAME = "above_confidence"
TOLD = 0.9
PLACE = f"at or above a confidence of {TOLD}"


def spec() -> dict[str, Any]:
    """Return a line a set over the confidences, each as wide as the next."""
    import altair as alt

    from service.web.charts.style import finished, rows

    domain = [KNOWN, FURTHER]
    base = (
        rows()
        .transform_filter("datum.value != null")
        .encode(
            x=alt.X(
                "confidence:O",
                title="confidence of at least",
                axis=alt.Axis(labelAngle=0, labelOverlap=True, grid=False),
            ),
            y=alt.Y(
                "value:Q",
                title=None,
                scale=alt.Scale(zero=False, nice=True),
                axis=alt.Axis(format="~%", tickCount=5),
            ),
            color=alt.Color(
                "of:N",
                scale=alt.Scale(domain=domain, range=[colour("known"), colour("before")]),
            ),
            shape=alt.Shape("of:N", scale=alt.Scale(domain=domain, range=["square", "circle"])),
        )
    )
    lines = base.mark_line(strokeWidth=2)
    points = base.mark_point(filled=True, size=40, opacity=1)
    return finished(alt.layer(lines, points).properties(height=180))


def figures(report: Report) -> list[Figure]:
    """Return the share above each confidence of every further set, and the accuracy if labelled."""
    drawn = []
    for at, found in enumerate(report["evaluations"]):
        if found.get("above_confidence"):
            drawn.append(_shares(at, found))
        known = (report["model_scores"].get("calibration") or {}).get("by_confidence")
        if found.get("by_confidence") and known:
            drawn.append(_accuracies(at, found, known))
    return drawn


def _shares(at: int, found: Row) -> Figure:
    place = pointer("evaluations", at, "above_confidence")
    rows = found["above_confidence"]
    return Figure(
        chart=NAME,
        key=f"share-{at}",
        title=f"“{words.name(found['name'])}”: {_told(rows, 'share')} of it {PLACE}, "
        f"{_told(rows, 'calibration_share')} of the calibration set",
        note="Softmax as the model gives it. Where a shifted set keeps its confidence, the model "
        "does not notice.",
        data=_data(rows, "share", rows, "calibration_share"),
        table=Table(
            (
                Column("confidence", "confidence", words.number),
                Column("count", "samples", words.count),
                Column("share", "share of this set", words.percent),
                Column("calibration_share", "of the calibration set", words.percent),
            ),
            [(f"{place}/{row}", values) for row, values in enumerate(rows)],
        ),
    )


def _accuracies(at: int, found: Row, known: list[Row]) -> Figure:
    place = pointer("evaluations", at, "by_confidence")
    table = [
        (
            f"{place}/{row}",
            {
                **ours,
                "known": theirs["accuracy"],
                "_paths": {"known": f"/model_scores/calibration/by_confidence/{row}/accuracy"},
            },
        )
        for row, (ours, theirs) in enumerate(zip(found["by_confidence"], known, strict=True))
    ]
    return Figure(
        chart=NAME,
        key=f"accuracy-{at}",
        title=f"“{words.name(found['name'])}”: right {_told(found['by_confidence'], 'accuracy')} "
        f"of the time {PLACE}, the calibration set {_told(known, 'accuracy')}",
        note="Top-1, by softmax as the model gives it; nothing is drawn where no sample lies "
        "above.",
        data=_data(found["by_confidence"], "accuracy", known, "accuracy"),
        table=Table(
            (
                Column("confidence", "confidence", words.number),
                Column("count", "samples", words.count),
                Column("accuracy", "right, this set", words.percent),
                Column("known", "right, calibration set", words.percent),
            ),
            table,
        ),
    )


def _told(rows: list[Row], key: str) -> str:
    return words.percent(next((row[key] for row in rows if row["confidence"] == TOLD), None))


def _data(ours: list[Row], key: str, theirs: list[Row], other: str) -> dict[str, list[Row]]:
    sides = ((KNOWN, theirs, other), (FURTHER, ours, key))
    return {
        "rows": [
            {"confidence": row["confidence"], "value": row[name], "of": side}
            for side, rows, name in sides
            for row in rows
        ]
    }

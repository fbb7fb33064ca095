"""The calibration error before and after, beside what chance alone makes of it."""

from typing import Any

from service.web.charts import words
from service.web.charts.figure import Column, Figure, Report, Row, Table, pointer
from service.web.charts.palette import colour

NAME = "before_after"
COLUMNS = (
    Column("_event", "event", str),
    Column("before", "before, as the softmax says", words.percent),
    Column("after", "after", words.percent),
    Column("chance", "what chance makes of a calibrated one, at most", words.percent),
)


def spec() -> dict[str, Any]:
    """Return a dumbbell an event, on the stretch that chance alone would explain."""
    import altair as alt

    from service.web.charts.style import MUTED, finished, rows

    y = alt.Y("event:N", title=None, sort=None, axis=alt.Axis(ticks=False, domain=False))
    share = alt.Axis(format="~%", tickCount=5)
    x = alt.X("before:Q", title="calibration error", axis=share, scale=alt.Scale(domainMin=0))
    chance = (
        rows()
        .transform_filter("datum.chance != null")
        .transform_calculate(none="0")
        .mark_bar(color=colour("known"), opacity=0.35, size=18)
        .encode(x="none:Q", x2="chance:Q", y=y)
    )
    line = rows().mark_rule(color=MUTED, strokeWidth=2).encode(x=x, x2="after:Q", y=y)
    side = alt.Scale(domain=["before", "after"], range=[colour("before"), colour("after")])
    ends = (
        rows()
        .transform_fold(["before", "after"], as_=["side", "error"])
        .mark_point(filled=True, size=90, opacity=1)
        .encode(
            x="error:Q",
            y=y,
            color=alt.Color("side:N", scale=side),
            shape=alt.Shape(
                "side:N", scale=alt.Scale(domain=["before", "after"], range=["square", "circle"])
            ),
        )
    )
    return finished(alt.layer(chance, line, ends).properties(height=alt.Step(36)))


def figures(report: Report) -> list[Figure]:
    """Return one figure of all events, or none without scores."""
    table = [row for k, event in report["events"].items() if (row := _row(k, event)) is not None]
    if not table:
        return []
    rows = [row for _, row in table]
    changes = [
        f"{row['_event']} from {words.percent(row['before'])} to {words.percent(row['after'])}"
        for row in rows
    ]
    on = "on the evaluation set" if rows[0]["_evaluated"] else "by cross-validation"
    return [
        Figure(
            chart=NAME,
            key="all",
            title=f"Calibration error, {words.enumerated(changes)}",
            note=f"Mean gap between what is said and what comes true, {on}. Grey: what chance "
            "alone would make of a calibrated table, in 99 of 100 cases.",
            data={
                "rows": [
                    {"event": row["_event"], **{n: row[n] for n in ("before", "after", "chance")}}
                    for row in rows
                ]
            },
            table=Table(COLUMNS, table),
        )
    ]


def _row(k: str, event: Row) -> tuple[str, Row] | None:
    served, raw = event["measures"][event["served"]], event["baselines"].get("raw_softmax")
    if raw is None:
        return None
    evaluated = served["evaluation"] is not None
    before, after = (
        _error(found, score, evaluated=evaluated)
        for found, score in ((raw, "ece_15"), (served, "ece"))
    )
    if before is None or after is None:
        return None
    band = "evaluation_ece_band" if evaluated else "ece_band"
    where = pointer("events", k)
    measure = where + pointer("measures", event["served"])
    part, end = ("evaluation", "") if evaluated else ("scores", "/mean")
    return where, {
        "_event": words.event(k),
        "_evaluated": evaluated,
        "before": before,
        "after": after,
        "chance": (served.get(band) or {}).get("upper"),
        "_paths": {
            "before": f"{where}/baselines/raw_softmax/{part}/ece_15{end}",
            "after": f"{measure}/{part}/ece{end}",
            "chance": f"{measure}/{band}/upper",
        },
    }


def _error(found: Row, score: str, *, evaluated: bool) -> float | None:
    value: float | None
    if evaluated:
        value = (found["evaluation"] or {}).get(score)
    else:
        value = found["scores"].get(score, {}).get("mean")
    return value

"""The reliability diagram: what was said against what came true, before calibration and after."""

from typing import Any

from service.web.charts import words
from service.web.charts.figure import Column, Figure, Report, Row, Table, pointer
from service.web.charts.palette import colour

NAME = "reliability"
SETS = {
    "evaluation": "samples of the evaluation set",
    "half": "samples of the calibration set that fitted nothing",
}
COLUMNS = (
    Column("_side", "", str),
    Column("said", "said", words.percent),
    Column("hit_rate", "came true", words.percent),
    Column("lower", "from", words.percent),
    Column("upper", "to", words.percent),
    Column("hits", "hits", words.count),
    Column("count", "samples", words.count),
)


def spec() -> dict[str, Any]:
    """Return the diagonal, and points with intervals about it.

    Both axes grow as a root from 100 %, where most of what a good model says lies.
    """
    import altair as alt

    from service.web.charts.style import MUTED, finished, rows

    most = alt.param(name="most", value=1.0)
    scale = alt.Scale(
        type="pow", exponent=0.4, domain=[alt.ExprRef("most"), 0.0], nice=False, zero=False
    )
    axis = alt.Axis(
        values=[
            0,
            0.001,
            0.01,
            0.05,
            0.1,
            0.2,
            0.4,
            0.6,
            0.8,
            1,
        ],  # where they meet, the first stay
        labelExpr="format(100 * (1 - datum.value), '~r') + '%'",
        labelOverlap="greedy",
        labelFlush=False,
    )
    domain = ["before", "after"]
    side = alt.Scale(domain=domain, range=[colour(name) for name in domain])
    shape = alt.Scale(domain=domain, range=["square", "circle"])
    shares = ("said", "hit_rate", "lower", "upper")
    base = (
        rows()
        .transform_calculate(**{f"no_{name}": f"1 - datum.{name}" for name in shares})
        .encode(
            x=alt.X("no_said:Q", title="said", scale=scale, axis=axis),
            color=alt.Color("_side:N", scale=side),
        )
    )
    diagonal = (
        alt.Chart(alt.InlineData([{"at": 0}, {"at": 1}]))
        .mark_line(color=MUTED, strokeDash=[4, 3], strokeWidth=1, clip=True)
        .encode(x=alt.X("at:Q", scale=scale), y=alt.Y("at:Q", scale=scale))
    )
    intervals = base.mark_rule(clip=True, strokeWidth=1.5, opacity=0.75).encode(
        y=alt.Y("no_lower:Q", title="came true", scale=scale, axis=axis), y2="no_upper:Q"
    )
    points = base.mark_point(filled=True, opacity=0.85).encode(
        y=alt.Y("no_hit_rate:Q", scale=scale),
        shape=alt.Shape("_side:N", scale=shape),
        size=alt.Size("count:Q", scale=alt.Scale(type="sqrt", range=[14, 220]), legend=None),
    )
    return finished(alt.layer(diagonal, intervals, points).add_params(most).properties(height=280))


def figures(report: Report) -> list[Figure]:
    """Return one figure an event, where it was judged on samples that fitted nothing."""
    return [
        _figure(k, event, found["reliability"])
        for k, event in report["events"].items()
        if (found := event["measures"][event["served"]]).get("reliability")
    ]


def _figure(k: str, event: Row, found: Row) -> Figure:
    place = pointer("events", k, "measures", event["served"], NAME)
    table = [
        (f"{place}/{side}/{at}", {**row, "_side": side})
        for side in ("before", "after")
        for at, row in enumerate(found[side])
        if row["count"]
    ]
    rows = [row for _, row in table]
    return Figure(
        chart=NAME,
        key=k,
        title=_title(k, event),
        note=f"{words.count(found['n_samples'])} {SETS[found['held_out']]}. Lines are "
        f"{words.asked(found['level'])} intervals; larger points are of more samples; on the "
        "dashes what was said came true. Both axes grow as roots towards 100 %.",
        data={"rows": rows},
        table=Table(COLUMNS, table),
        parameters={"most": _most(rows)},
    )


def _title(k: str, event: Row) -> str:
    served, raw = event["measures"][event["served"]], event["baselines"].get("raw_softmax")
    after, before = error(served, "ece"), None if raw is None else error(raw, "ece_15")
    if after is None or before is None:
        return f"{words.event(k)}: what was said, and what came true"
    return (
        f"{words.event(k)}: what is said is off by {words.percent(before)} on average before "
        f"calibration, by {words.percent(after)} after"
    )


def error(found: Row, score: str) -> float | None:
    """Return a calibration error: on the evaluation set, or else the mean over the folds."""
    if found["evaluation"] is not None:
        value: float | None = found["evaluation"].get(score)
        return value
    mean: float | None = found["scores"].get(score, {}).get("mean")
    return mean


def _most(rows: list[dict[str, Any]]) -> float:
    """Return the share of misses where the axes begin: a tenth that leaves every point inside."""
    lowest = min((min(row["said"], row["hit_rate"]) for row in rows), default=0.0)
    return max(1.0 - int(10 * lowest) / 10, 0.1)

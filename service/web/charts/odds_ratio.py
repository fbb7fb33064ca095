"""The odds ratio of each bin: Oberman et al., Figure 1; Finlay & Oberman, Figure 3."""

from typing import Any

from service.web.charts import words
from service.web.charts.figure import Column, Figure, Report, Row, Table, pointer
from service.web.charts.palette import colour

NAME = "odds_ratio"
BETTER, WORSE = "above average", "below average"
COLUMNS = (
    Column("_bin", "bin, the most certain first", str),
    Column("odds_ratio", "odds ratio", words.number),
    Column("probability", "probability", words.percent),
    Column("count", "samples", words.count),
)


def spec() -> dict[str, Any]:
    """Return a bar a bin, up from a ratio of 1, and the mean ratio as a line."""
    import altair as alt

    from service.web.charts.style import INK, finished, rows

    side = alt.Scale(domain=[BETTER, WORSE], range=[colour("after"), colour("before")])
    ratio = alt.Scale(type="log", domainMin=1)
    bars = (
        rows()
        .transform_calculate(one="1", left="datum._bin - 0.45", right="datum._bin + 0.45")
        .mark_bar()
        .encode(
            x=alt.X(
                "left:Q",
                title="bin, from the most certain to the least",
                scale=alt.Scale(zero=False, nice=False),
                axis=alt.Axis(grid=False, tickMinStep=1, tickCount=8, format="d"),
            ),
            x2="right:Q",
            y=alt.Y(
                "odds_ratio:Q",
                title="odds ratio to the average",
                scale=ratio,
                axis=alt.Axis(tickCount=3, format="~g"),
            ),
            y2="one:Q",
            color=alt.Color("_side:N", scale=side),
        )
    )
    mean = rows("mean").mark_rule(color=INK, strokeDash=[4, 3]).encode(y="pooled:Q")
    told = (
        rows("mean")
        .mark_text(align="right", baseline="bottom", dx=-2, dy=-2)
        .encode(x=alt.value("width"), y="pooled:Q", text="_text:N")
    )
    return finished(alt.layer(bars, mean, told).properties(height=200))


def figures(report: Report) -> list[Figure]:
    """Return one figure an event, of the bins that are served and hold a sample."""
    return [_figure(k, event) for k, event in report["events"].items()]


def _figure(k: str, event: Row) -> Figure:
    served = event["served"]
    found = event["measures"][served]
    place = pointer("events", k, "measures", served)
    table = [
        (f"{place}/bins/{at}", {**row, "_bin": at + 1, "_side": _side(row, event)})
        for at, row in enumerate(found["bins"])
        if row["count"]
    ]
    mean = found["scores"].get("eor", {}).get("pooled")
    title = f"{words.event(k)}: odds of being right, by bin of {words.name(served)}"
    if mean is not None:
        title = (
            f"{words.event(k)}: {words.name(served)} moves the odds of being right "
            f"{words.figures(mean, 3)}-fold on average"
        )
    keys = ("_bin", "odds_ratio", "_side")
    return Figure(
        chart=NAME,
        key=k,
        title=title,
        note=f"Odds of each bin's probability against those of all samples, accuracy "
        f"{words.percent(event['accuracy'])}; whichever is larger is above. The dashes are the "
        "mean, weighted by samples.",
        data={
            "rows": [{key: row[key] for key in keys} for _, row in table],
            "mean": [] if mean is None else [{"pooled": mean, "_text": words.figures(mean, 3)}],
        },
        table=Table(COLUMNS, table),
    )


def _side(row: Row, event: Row) -> str:
    return BETTER if row["probability"] >= event["accuracy"] else WORSE

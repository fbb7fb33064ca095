"""Uncertainty against loss, by outcome: Finlay & Oberman, Figures 1 and 4."""

from typing import Any

from service.web.charts import words
from service.web.charts.figure import Column, Figure, Report, Row, Table, pointer
from service.web.charts.palette import colour

NAME = "loss_scatter"
OUTCOMES = {"hit": "hit", "top5_hit": "Top-5 hit", "miss": "miss"}
COLUMNS = (
    Column("_outcome", "outcome", str),
    Column("count", "samples", words.count),
    Column("_drawn", "drawn", words.count),
    Column("infinite", "of infinite loss, not drawn", words.count),
)


def spec() -> dict[str, Any]:
    """Return a point a sample."""
    import altair as alt

    from service.web.charts.style import finished, rows

    domain = list(OUTCOMES.values())
    colours = [colour("after"), colour("third"), colour("before")]
    root = alt.Scale(type="sqrt", nice=True)
    points = (
        rows()
        .mark_point(strokeWidth=1.2, opacity=0.8, size=18)
        .encode(
            x=alt.X("u:Q", title="uncertainty", scale=root, axis=alt.Axis(tickCount=6)),
            y=alt.Y(
                "l:Q",
                title="loss, \u2212log p of the label",
                scale=root,
                axis=alt.Axis(tickCount=6),
            ),
            color=alt.Color("o:N", scale=alt.Scale(domain=domain, range=colours)),
            shape=alt.Shape(
                "o:N", scale=alt.Scale(domain=domain, range=["circle", "triangle", "cross"])
            ),
        )
    )
    return finished(points.properties(height=280))


def figures(report: Report) -> list[Figure]:
    """Return one figure an event, of the measure that is served."""
    return [
        _figure(k, event, found["curves"]["scatter"])
        for k, event in report["events"].items()
        if "scatter" in (found := event["measures"][event["served"]])["curves"]
    ]


def _figure(k: str, event: Row, scatter: Row) -> Figure:
    served = event["served"]
    place = pointer("events", k, "measures", served, "curves", "scatter")
    points = [
        {"u": u, "l": loss, "o": told}
        for outcome, told in OUTCOMES.items()
        for u, loss in zip(scatter[outcome]["uncertainty"], scatter[outcome]["loss"], strict=True)
    ]
    table = [
        (
            f"{place}/{outcome}",
            {**scatter[outcome], "_outcome": told, "_drawn": len(scatter[outcome]["loss"])},
        )
        for outcome, told in OUTCOMES.items()
    ]
    counts = words.enumerated(
        [f"{words.count(row['count'])} of “{row['_outcome']}”" for _, row in table]
    )
    return Figure(
        chart=NAME,
        key=k,
        title=_title(k, event),
        note=f"U is {words.name(served)}. At most 200 of each outcome are drawn, at random, of "
        f"{counts}; both axes grow as roots.",
        data={"rows": points},
        table=Table(COLUMNS, table),
    )


def _title(k: str, event: Row) -> str:
    found = event["measures"][event["served"]]["scores"].get("auroc", {})
    area = found.get("pooled") if found.get("mean") is None else found["mean"]
    if area is None:
        return f"{words.event(k)}: loss and uncertainty"
    return (
        f"{words.event(k)}: an error is more uncertain than a hit in "
        f"{words.percent(area)} of pairs (AUROC)"
    )

"""What was said and what came true by predicted class, the worst first."""

from typing import Any

from service.web.charts import words
from service.web.charts.figure import Column, Figure, Report, Row, Table, pointer
from service.web.charts.palette import colour
from service.web.charts.reliability import SETS

NAME = "classes"
MOST = 20
COLUMNS = (
    Column("_class", "predicted class", str),
    Column("said", "said", words.percent),
    Column("hit_rate", "came true", words.percent),
    Column("lower", "from", words.percent),
    Column("upper", "to", words.percent),
    Column("hits", "hits", words.count),
    Column("count", "samples", words.count),
)


def spec() -> dict[str, Any]:
    """Return a row a class: the interval of the hit rate, and a tick where it was said to be."""
    import altair as alt

    from service.web.charts.style import INK, finished, rows

    base = rows().encode(
        y=alt.Y("_place:O", title=None, axis=None, sort="ascending"),
    )
    share = alt.Scale(zero=False, nice=True)
    names = base.mark_text(align="left", baseline="middle", fontSize=11, dy=-9, limit=330).encode(
        x=alt.value(0), text="_label:N"
    )
    intervals = base.mark_rule(color=colour("after"), strokeWidth=2, yOffset=5).encode(
        x=alt.X("lower:Q", title="came true", scale=share, axis=alt.Axis(format="%", tickCount=5)),
        x2="upper:Q",
    )
    rates = base.mark_point(color=colour("after"), filled=True, size=50, yOffset=5).encode(
        x="hit_rate:Q", opacity=alt.value(1)
    )
    said = base.mark_tick(color=INK, thickness=2, size=14, yOffset=5).encode(x="said:Q")
    return finished(alt.layer(names, intervals, rates, said).properties(height=alt.Step(32)))


def figures(report: Report) -> list[Figure]:
    """Return one figure an event; at most 20 classes of it are drawn, all are in the report."""
    classes = report["provenance"]["config"].get("classes") or []
    return [
        _figure(k, event, found["reliability"], classes)
        for k, event in report["events"].items()
        if (found := event["measures"][event["served"]]).get("reliability")
    ]


def _figure(k: str, event: Row, found: Row, classes: list[str]) -> Figure:
    place = pointer("events", k, "measures", event["served"], "reliability", "classes")
    table = [
        (f"{place}/{at}", {**row, "_class": _name(row["group"], classes), "_place": at})
        for at, row in enumerate(found["classes"][:MOST])
        if row["count"]
    ]
    n_classes = len(found["classes"])
    drawn = (
        f"The worst {len(table)} of {n_classes}" if n_classes > len(table) else f"All {n_classes}"
    )
    return Figure(
        chart=NAME,
        key=k,
        title=_title(k, table[0][1]),
        note=f"{drawn} predicted classes. Points: how often it came true, with "
        f"{words.asked(found['level'])} intervals, of {words.count(found['n_samples'])} "
        f"{SETS[found['held_out']]}; upright ticks: what was said.",
        data={"rows": [row | {"_label": _label(row)} for _, row in table]},
        table=Table(COLUMNS, table),
    )


def _name(group: int, classes: list[str]) -> str:
    return words.name(classes[group]) if group < len(classes) else f"class {group}"


def _label(row: Row) -> str:
    return f"{row['_class']}  ({words.count(row['count'])})"


def _title(k: str, worst: Row) -> str:
    if worst["lower"] <= worst["said"] <= worst["upper"]:
        return (
            f"{words.event(k)}: each predicted class keeps what is said, as far as its samples tell"
        )
    return (
        f"{words.event(k)}: furthest off is “{worst['_class']}”, said "
        f"{words.percent(worst['said'])}, true {words.percent(worst['hit_rate'])} of "
        f"{words.count(worst['count'])}"
    )

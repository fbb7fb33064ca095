"""The risk-coverage curve with its band, and the operating points that keep to a risk."""

from typing import Any

from service.web.charts import words
from service.web.charts.figure import Column, Figure, Report, Row, Table, pointer
from service.web.charts.palette import colour

NAME = "risk_coverage"
LEAST_COVERAGE = 0.1  # below it the band is as wide as the picture
SHOWN_POINTS = 20
COLUMNS = (
    Column("coverage", "accepted", words.percent),
    Column("risk", "errors among them", words.percent),
    Column("lower", "from", words.percent),
    Column("upper", "to", words.percent),
    Column("threshold", "threshold", words.number),
)


def spec() -> dict[str, Any]:
    """Return the curve, its band, and a mark at each operating point."""
    import altair as alt

    from service.web.charts.style import INK, finished, rows

    most = alt.param(name="most", value=1.0)
    share = alt.Axis(format="%", tickCount=5)
    x = alt.X("coverage:Q", title="accepted", axis=share, scale=alt.Scale(domain=[0, 1]))
    risk = alt.Scale(domain=[0, alt.ExprRef("most")], nice=False)
    fine = alt.Axis(format="~%", tickCount=5)
    band = (
        rows()
        .mark_area(color=colour("band"), opacity=0.22, clip=True)
        .encode(
            x=x, y=alt.Y("lower:Q", title="errors among them", scale=risk, axis=fine), y2="upper:Q"
        )
    )
    line = rows().mark_line(color=colour("after"), strokeWidth=2, clip=True).encode(x=x, y="risk:Q")
    points = rows("points").transform_calculate(risk="datum.n_errors / datum.n_accepted")
    drop = points.mark_rule(color=INK, strokeDash=[3, 3], clip=True).encode(x=x, y="risk:Q")
    marks = points.mark_point(color=INK, filled=True, size=60, shape="diamond", opacity=1).encode(
        x=x, y="risk:Q"
    )
    told = points.mark_text(align="right", baseline="bottom", dx=-5, dy=-4).encode(
        x=x, y="risk:Q", text="_text:N"
    )
    return finished(
        alt.layer(band, line, drop, marks, told).add_params(most).properties(height=220)
    )


def figures(report: Report) -> list[Figure]:
    """Return one figure an event, of the measure that is served, where curves were kept."""
    return [
        _figure(k, event, found)
        for k, event in report["events"].items()
        if (found := event["measures"][event["served"]])["curves"].get("risk_band")
    ]


def _figure(k: str, event: Row, found: Row) -> Figure:
    curve, band = found["curves"]["risk_coverage"], found["curves"]["risk_band"]
    place = pointer("events", k, "measures", event["served"], "curves")
    drawn = [
        dict(zip(("coverage", "risk", "lower", "upper"), values, strict=True))
        for values in zip(
            curve["coverage"], curve["risk"], band["lower"], band["upper"], strict=True
        )
    ]
    step = max(len(drawn) // SHOWN_POINTS, 1)
    shown = range(0, len(drawn), step)
    table = [_row(place, curve, band, at) for at in sorted({*shown, len(drawn) - 1})]
    points = [target for target in found["selective"] if target["threshold"] is not None]
    return Figure(
        chart=NAME,
        key=k,
        title=_title(k, found["selective"]),
        note=f"Accepted by {words.name(event['served'])}, the most certain first, of "
        f"{words.count(band['accepted'][-1])} calibration samples. Band: "
        f"{words.asked(band['level'])} interval at each point by itself. Diamonds: what keeps to "
        "a risk with confidence.",
        data={
            "rows": drawn,
            "points": [
                {key: target[key] for key in ("coverage", "n_errors", "n_accepted")}
                | {"_text": f"≤ {words.asked(target['target']['max_risk'])}"}
                for target in points
            ],
        },
        table=Table(COLUMNS, table),
        parameters={"most": _most(drawn, found["selective"])},
    )


def _row(place: str, curve: Row, band: Row, at: int) -> tuple[str, Row]:
    parts = {"coverage": curve, "risk": curve, "threshold": curve, "lower": band, "upper": band}
    return place, {
        **{key: part[key][at] for key, part in parts.items()},
        "_paths": {
            key: f"{place}/{'risk_coverage' if part is curve else 'risk_band'}/{key}/{at}"
            for key, part in parts.items()
        },
    }


def _title(k: str, targets: list[Row]) -> str:
    if not targets:
        return f"{words.event(k)}: errors among what is accepted"
    target = targets[0]
    bound = words.asked(target["target"]["max_risk"])
    if target["threshold"] is not None:
        return (
            f"{words.event(k)}: {words.percent(target['coverage'])} can be accepted with at most "
            f"{bound} of errors"
        )
    missing = target["labels_missing"]
    labels = "" if missing is None else f"; about {words.count(missing)} more labels would tell"
    return f"{words.event(k)}: nothing can be accepted with at most {bound} of errors{labels}"


def _most(drawn: list[dict[str, float]], targets: list[Row]) -> float:
    """Return where the axis of risks ends: above the curve, and the bands where they are narrow."""
    risks = [row["risk"] for row in drawn if row["coverage"] >= LEAST_COVERAGE]
    asked = [found["target"]["max_risk"] for found in targets if found["threshold"] is not None]
    return min(1.0, max(1.4 * max(risks, default=1.0), 1.1 * max(asked, default=0.0), 1e-4))

"""The chart of thresholds: the risk-coverage curve, its band and its operating points."""

from howsure.statistics.measures.scale import scale_of
from service.reports.charts import text
from service.reports.charts.figure import Column, Figure, Report, Row, Table, served_events
from service.reports.located import Located
from service.reports.numbers import rough_count
from service.reports.summary import active_point

RISK_COVERAGE = "risk_coverage"
MIN_COVERAGE = 0.1  # below it the band is as wide as the picture
SHOWN_POINTS = 20
COLUMNS = (
    Column("accepted", text.percent),
    Column("error rate among them", text.percent),
    Column("from", text.percent),
    Column("to", text.percent),
)


def risk_coverage_figures(report: Report) -> list[Figure]:
    """Return one figure an event, of the measure that is served, where curves were kept."""
    return [
        _figure(k, event, table, at["curves"], active_point(report, k))
        for k, event, table, at in served_events(report)
        if table["curves"].get("risk_band")
    ]


def _figure(k: str, event: Row, found: Row, shown: Located, point: Row | None) -> Figure:
    curve, band = found["curves"]["risk_coverage"], found["curves"]["risk_band"]
    drawn = [
        dict(zip(("coverage", "risk", "lower", "upper"), values, strict=True))
        for values in zip(
            curve["coverage"], curve["risk"], band["lower"], band["upper"], strict=True
        )
    ]
    step = max(len(drawn) // SHOWN_POINTS, 1)
    places = sorted({*range(0, len(drawn), step), len(drawn) - 1})
    points = [target for target in found["selective"] if target["threshold"] is not None]
    marks = [(target, f"≤ {text.asked(target['target']['max_risk'])}") for target in points]
    scale = scale_of(event["served"])
    tested = {scale.of(target["threshold"]) for target in points}
    diamonds = f"error rates {event['assurance']}"
    if point is not None and point["threshold"] not in tested:
        diamonds += ", and the active operating point"
        marks.append((point["consequences"], text.name(point["name"])))
    return Figure(
        chart=RISK_COVERAGE,
        key=k,
        title=_title(k, found["selective"]) if point is None else _title_of_point(k, point),
        note=f"{text.count(band['accepted'][-1])} calibration samples, the most certain first by "
        f"{text.name(event['served'])}. Band: {text.asked(band['level'])} interval of each point. "
        f"Diamonds: {diamonds}.",
        data={
            "rows": drawn,
            "points": [
                {key: mark[key] for key in ("coverage", "n_errors", "n_accepted")} | {"_text": said}
                for mark, said in marks
            ],
        },
        table=Table(
            (*COLUMNS, Column("threshold", lambda end: text.number(scale.of(end)))),
            [_cells(shown, at) for at in places],
        ),
        parameters={"most": _most(drawn, found["selective"])},
    )


def _cells(curves: Located, at: int) -> list[Located]:
    curve, band = curves["risk_coverage"], curves["risk_band"]
    parts = (curve["coverage"], curve["risk"], band["lower"], band["upper"], curve["threshold"])
    return [part[at] for part in parts]


def _title(k: str, targets: list[Row]) -> str:
    if not targets:
        return f"{text.event(k)}: error rate among accepted answers"
    target = targets[0]
    bound = text.asked(target["target"]["max_risk"])
    if target["threshold"] is not None:
        return (
            f"{text.event(k)}: {text.percent(target['coverage'])} can be accepted with an error "
            f"rate of at most {bound}"
        )
    missing = target["labels_missing"]
    labels = "" if missing is None else f"; about {rough_count(missing)} more labels are needed"
    return f"{text.event(k)}: an error rate of at most {bound} cannot be proven{labels}"


def _title_of_point(k: str, point: Row) -> str:
    seen, max_risk = point["consequences"], point["chosen_by"].get("max_risk")
    said = (
        f"{text.event(k)}: “{text.name(point['name'])}”, the active operating point, accepts "
        f"{text.percent(seen['coverage'])}"
    )
    if max_risk is not None:
        return f"{said} with an error rate of at most {text.asked(max_risk)}"
    return (
        said if seen["risk"] is None else f"{said}; {text.percent(seen['risk'])} of these are wrong"
    )


def _most(drawn: list[dict[str, float]], targets: list[Row]) -> float:
    """Return where the axis of risks ends: above the curve, and the bands where they are narrow."""
    risks = [row["risk"] for row in drawn if row["coverage"] >= MIN_COVERAGE]
    asked = [found["target"]["max_risk"] for found in targets if found["threshold"] is not None]
    # Without errors the axis would end at the curve, and cut its intervals.
    widest = 0.0 if any(risks) else drawn[-1]["upper"]
    most = max(1.4 * max(risks, default=1.0), 1.1 * max(asked, default=0.0), 1.1 * widest)
    return min(1.0, max(most, 1e-4))

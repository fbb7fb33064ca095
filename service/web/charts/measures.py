"""The measures of an event compared: how far each is from the one served, and what it costs."""

from typing import Any

from service.web.charts import words
from service.web.charts.figure import Column, Figure, Report, Row, Table, pointer
from service.web.charts.palette import colour

NAME = "measures"
SERVED, TIED, DIFFERS = "served", "tied with it", "differs clearly"
ERRORS = 2.0  # standard errors beyond which a difference is clear, as everywhere


def _error(value: float | None) -> str:
    return words.figures(value, 2)


COLUMNS = (
    Column("measure", "measure", str),
    Column("_verdict", "", str),
    Column("difference/mean", "NLL more than the served", words.signed),
    Column("difference/standard_error", "± standard error", _error),
    Column("nll/value", "NLL", words.number),
    Column("auroc/value", "AUROC", words.number),
    Column("passes", "runs of the model", words.count),
    Column("ms_per_row", "ms a row", words.number),
)


def spec() -> dict[str, Any]:
    """Return a row a measure: the difference with two standard errors either way."""
    import altair as alt

    from service.web.charts.style import finished, named_differences, rows

    domain = [SERVED, TIED, DIFFERS]
    colours = [colour("ink"), colour("after"), colour("before")]
    base = (
        rows()
        .transform_calculate(
            lower=f"datum.mean - {ERRORS} * datum.error",
            upper=f"datum.mean + {ERRORS} * datum.error",
        )
        .encode(y=alt.Y("place:O", title=None, axis=None))
    )
    verdict = alt.Color("verdict:N", scale=alt.Scale(domain=domain, range=colours))
    zero, names = named_differences(base)
    intervals = base.mark_rule(strokeWidth=2, yOffset=6).encode(
        x=alt.X(
            "lower:Q",
            title="negative log-likelihood more than the served",
            axis=alt.Axis(tickCount=5, format="~g", grid=False),
        ),
        x2="upper:Q",
        color=verdict,
    )
    points = base.mark_point(filled=True, size=60, opacity=1, yOffset=6).encode(
        x="mean:Q",
        color=verdict,
        shape=alt.Shape(
            "verdict:N", scale=alt.Scale(domain=domain, range=["diamond", "circle", "square"])
        ),
    )
    return finished(alt.layer(zero, names, intervals, points).properties(height=alt.Step(34)))


def figures(report: Report) -> list[Figure]:
    """Return one figure an event that has several measures whose differences are known."""
    return [
        _figure(k, event)
        for k, event in report["events"].items()
        if any(row.get("difference") for row in event["comparison"])
    ]


def _figure(k: str, event: Row) -> Figure:
    place = pointer("events", k, "comparison")
    table = [
        (f"{place}/{at}", {**row, "_verdict": _verdict(row)})
        for at, row in enumerate(event["comparison"])
        if row["served"] or row.get("difference")
    ]
    tied = [words.name(row["measure"]) for _, row in table if row["_verdict"] == TIED]
    served = words.name(event["served"])
    ties = "no measure ties with it"
    if tied:
        ties = f"{words.enumerated(tied)} {'ties' if len(tied) == 1 else 'tie'} with it"
    return Figure(
        chart=NAME,
        key=k,
        title=f"{words.event(k)}: {served} serves; {ties}",
        note="Cross-validated, fold by fold; bars are two standard errors either way. Tied: they "
        "hold 0. To the left is better.",
        data={"rows": [_drawn(at, row) for at, (_, row) in enumerate(table)]},
        table=Table(COLUMNS, table),
    )


def _verdict(row: Row) -> str:
    if row["served"]:
        return SERVED
    error = row["difference"]["standard_error"]
    clear = error is not None and abs(row["difference"]["mean"]) > ERRORS * error
    return DIFFERS if clear else TIED


def _drawn(place: int, row: Row) -> Row:
    difference = row.get("difference") or {"mean": 0.0, "standard_error": 0.0}
    cost = ""
    if row["ms_per_row"] is not None:
        runs = "1 run" if row["passes"] == 1 else f"{words.count(row['passes'])} runs"
        cost = f"  ({runs}, {words.figures(row['ms_per_row'], 2)} ms a row)"
    return {
        "place": place,
        "label": words.name(row["measure"]) + cost,
        "verdict": row["_verdict"],
        "mean": difference["mean"],
        "error": difference["standard_error"] or 0.0,
    }

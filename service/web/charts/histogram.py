"""Confidence and entropy of a further set beside the calibration set: Ovadia et al., Figure 1."""

from typing import Any

from service.web.charts import words
from service.web.charts.figure import Column, Figure, Report, Row, Table, pointer
from service.web.charts.palette import colour

NAME = "histogram"
KINDS = {"confidence": "largest softmax probability", "entropy": "entropy, nats"}
KNOWN, FURTHER = "calibration set", "this set"
COLUMNS = (
    Column("from", "from", words.number),
    Column("to", "to", words.number),
    Column("counts", "samples of this set", words.count),
    Column("calibration_counts", "of the calibration set", words.count),
)


def spec() -> dict[str, Any]:
    """Return shares of the calibration set as filled bars, and of the further set as outlines."""
    import altair as alt

    from service.web.charts.style import finished, rows

    of_set = (
        rows()
        .transform_filter("datum.count > 0")
        .transform_calculate(share="datum.count / datum.n", none="0")
    )
    domain = [KNOWN, FURTHER]
    bars = of_set.encode(
        x=alt.X("from:Q", title=None, axis=alt.Axis(grid=False, tickCount=6)),
        x2="to:Q",
        y=alt.Y(
            "share:Q",
            title="share of the set",
            stack=None,
            scale=alt.Scale(type="sqrt", nice=True),
            axis=alt.Axis(format="~%", values=[0.01, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1]),
        ),
        y2="none:Q",
        fill=alt.Fill(
            "of:N",
            scale=alt.Scale(domain=domain, range=[colour("known"), "transparent"]),
            legend=alt.Legend(symbolType="square"),
        ),
        stroke=alt.Stroke(
            "of:N",
            scale=alt.Scale(domain=domain, range=[colour("known"), colour("before")]),
        ),
    )
    known = bars.transform_filter(f"datum.of == '{KNOWN}'").mark_bar(opacity=0.55, strokeWidth=0)
    further = bars.transform_filter(f"datum.of == '{FURTHER}'").mark_bar(strokeWidth=2)
    return finished(alt.layer(known, further).properties(height=180))


def figures(report: Report) -> list[Figure]:
    """Return a figure of confidence and one of entropy for each further set that has them."""
    return [
        _figure(at, found, kind)
        for at, found in enumerate(report["evaluations"])
        for kind in KINDS
        if found.get(kind)
    ]


def _figure(at: int, found: Row, kind: str) -> Figure:
    histogram = found[kind]
    place = pointer("evaluations", at, kind)
    cells = list(zip(histogram["edges"], histogram["edges"][1:], strict=False))
    table = [
        (
            place,
            {
                "from": lower,
                "to": upper,
                "counts": histogram["counts"][cell],
                "calibration_counts": histogram["calibration_counts"][cell],
                "_paths": {
                    "from": f"{place}/edges/{cell}",
                    "to": f"{place}/edges/{cell + 1}",
                    "counts": f"{place}/counts/{cell}",
                    "calibration_counts": f"{place}/calibration_counts/{cell}",
                },
            },
        )
        for cell, (lower, upper) in enumerate(cells)
    ]
    sides = {KNOWN: histogram["calibration_counts"], FURTHER: histogram["counts"]}
    said = "is shifted" if found["shifted"] else "is not seen to be shifted"
    return Figure(
        chart=NAME,
        key=f"{kind}-{at}",
        title=f"“{words.name(found['name'])}” {said}: {KINDS[kind]}",
        note=f"Shares of {words.count(found['samples'])} samples of this set and of "
        f"{words.count(sum(histogram['calibration_counts']))} of the calibration set; the axis of "
        "shares grows as a root.",
        data={
            "rows": [
                {"from": lower, "to": upper, "count": count, "n": sum(counts), "of": side}
                for side, counts in sides.items()
                for (lower, upper), count in zip(cells, counts, strict=True)
            ]
        },
        table=Table(COLUMNS, table),
    )

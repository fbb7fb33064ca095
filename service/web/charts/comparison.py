"""Calibrations compared with the first: differences in their own standard errors."""

from typing import Any

from service.web.charts import words
from service.web.charts.figure import Column, Figure, Report, Row, Table, pointer
from service.web.charts.palette import colour

NAME = "comparison"
ERRORS = 2.0
BETTER, WORSE, TIED = "better", "worse", "may be chance"
SCORES = {"nll": "negative log-likelihood", "brier": "Brier", "accuracy": "accuracy"}
COLUMNS = (
    Column("_what", "score", str),
    Column("mean", "difference", words.signed),
    Column("standard_error", "± standard error", words.number),
    Column("pairs", "pairs", words.count),
    Column("_verdict", "", str),
)


def spec() -> dict[str, Any]:
    """Return a row a score: the difference over its standard error, two either way."""
    import altair as alt

    from service.web.charts.style import finished, named_differences, rows

    domain = [BETTER, TIED, WORSE]
    colours = [colour("after"), colour("known"), colour("before")]
    base = (
        rows()
        .transform_calculate(
            at="datum.mean / datum.error",
            lower=f"datum.mean / datum.error - {ERRORS}",
            upper=f"datum.mean / datum.error + {ERRORS}",
        )
        .encode(y=alt.Y("place:O", title=None, axis=None))
    )
    verdict = alt.Color("verdict:N", scale=alt.Scale(domain=domain, range=colours))
    zero, names = named_differences(base)
    intervals = base.mark_rule(strokeWidth=2, yOffset=6).encode(
        x=alt.X(
            "lower:Q",
            title="difference, in its standard errors",
            axis=alt.Axis(tickCount=6, grid=False),
        ),
        x2="upper:Q",
        color=verdict,
    )
    points = base.mark_point(filled=True, size=60, opacity=1, yOffset=6).encode(
        x="at:Q",
        color=verdict,
        shape=alt.Shape(
            "verdict:N",
            scale=alt.Scale(domain=domain, range=["triangle-up", "circle", "triangle-down"]),
        ),
    )
    return finished(alt.layer(zero, names, intervals, points).properties(height=alt.Step(34)))


def figures(report: Report) -> list[Figure]:
    """Return one figure for each calibration that is compared with the first."""
    drawn = []
    for at, found in enumerate(report.get("comparisons", ())):
        table = _table(at, found)
        if table:
            drawn.append(_figure(at, found, table))
    return drawn


def _figure(at: int, found: Row, table: list[tuple[str, Row]]) -> Figure:
    first, second = words.name(found["first"]), words.name(found["second"])
    clear = [row for _, row in table if row["_verdict"] != TIED]
    verdicts = {row["_verdict"] for row in clear}
    said = f"{second} and {first} do not differ clearly"
    if len(verdicts) == 1:
        said = f"{second} is {verdicts.pop()} than {first} in {len(clear)} of {len(table)} scores"
    elif verdicts:
        said = f"{second} is better than {first} in some scores and worse in others"
    return Figure(
        chart=NAME,
        key=str(at),
        title=said,
        note=f"{second} minus {first}, on {words.name(found['on'])}; bars are two standard errors "
        "either way, and hold 0 where a difference may be chance.",
        data={
            "rows": [
                {
                    "place": place,
                    "label": f"{row['_what']}: {words.signed(row['mean'])} ± "
                    f"{words.figures(row['standard_error'], 2)}",
                    "mean": row["mean"],
                    "error": row["standard_error"],
                    "verdict": row["_verdict"],
                }
                for place, (_, row) in enumerate(table)
            ]
        },
        table=Table(COLUMNS, table),
    )


def _table(at: int, found: Row) -> list[tuple[str, Row]]:
    place = pointer("comparisons", at, "events")
    return [
        (
            f"{place}/{k}/differences/{score}",
            {
                **event["differences"][score],
                "_what": f"{words.event(k)}, {told}",
                "_verdict": _verdict(event["differences"][score], score),
            },
        )
        for k, event in found["events"].items()
        for score, told in SCORES.items()
        if event["differences"].get(score, {}).get("standard_error")
    ]


def _verdict(difference: Row, score: str) -> str:
    if abs(difference["mean"]) <= ERRORS * difference["standard_error"]:
        return TIED
    return BETTER if (difference["mean"] > 0) == (score == "accuracy") else WORSE

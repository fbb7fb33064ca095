"""Charts of differences: measures against the served one, calibrations against the first."""

from service.reports.charts import text
from service.reports.charts.figure import Column, Figure, Report, Row, Table, pointer
from service.reports.verdict import TIES, verdict

MEASURES = "measures"
SERVED, TIED, DIFFERS = "served", "tied with it", "differs clearly"


def _two_digits(value: float | None) -> str:
    return text.figures(value, 2)


MEASURES_COLUMNS = (
    Column("measure", "measure", str),
    Column("_verdict", "", str),
    Column("difference/mean", "NLL more than the served", text.signed),
    Column("difference/standard_error", "± standard error", _two_digits),
    Column("nll/value", "NLL", text.number),
    Column("auroc/value", "AUROC", text.number),
    Column("passes", "runs of the model", text.count),
    Column("ms_per_row", "ms a row", text.number),
)


def measure_figures(report: Report) -> list[Figure]:
    """Return one figure an event that has several measures whose differences are known."""
    return [
        _measure_figure(k, event)
        for k, event in report["events"].items()
        if any(row.get("difference") for row in event["comparison"])
    ]


def _measure_figure(k: str, event: Row) -> Figure:
    place = pointer("events", k, "comparison")
    table = [
        (f"{place}/{at}", {**row, "_verdict": _measure_verdict(row)})
        for at, row in enumerate(event["comparison"])
        if row["served"] or row.get("difference")
    ]
    tied = [text.name(row["measure"]) for _, row in table if row["_verdict"] == TIED]
    served = text.name(event["served"])
    ties = "no measure ties with it"
    if tied:
        ties = f"{text.enumerated(tied)} {'ties' if len(tied) == 1 else 'tie'} with it"
    return Figure(
        chart=MEASURES,
        key=k,
        title=f"{text.event(k)}: {served} serves; {ties}",
        note="Cross-validated, fold by fold; bars are two standard errors either way. Tied: they "
        "hold 0. To the left is better.",
        data={"rows": [_measure_row(at, row) for at, (_, row) in enumerate(table)]},
        table=Table(MEASURES_COLUMNS, table),
    )


def _measure_verdict(row: Row) -> str:
    if row["served"]:
        return SERVED
    return TIED if verdict(row["difference"]) in TIES else DIFFERS


def _measure_row(place: int, row: Row) -> Row:
    difference = row.get("difference") or {"mean": 0.0, "standard_error": 0.0}
    cost = ""
    if row["ms_per_row"] is not None:
        runs = "1 run" if row["passes"] == 1 else f"{text.count(row['passes'])} runs"
        cost = f"  ({runs}, {text.figures(row['ms_per_row'], 2)} ms a row)"
    return {
        "place": place,
        "label": text.name(row["measure"]) + cost,
        "verdict": row["_verdict"],
        "mean": difference["mean"],
        "error": difference["standard_error"] or 0.0,
    }


COMPARISON = "comparison"
MAYBE_CHANCE = "may be chance"  # beside "better" and "worse"
COMPARED_SCORES = {"nll": "negative log-likelihood", "brier": "Brier", "accuracy": "accuracy"}
COMPARISON_COLUMNS = (
    Column("_what", "score", str),
    Column("mean", "difference", text.signed),
    Column("standard_error", "± standard error", text.number),
    Column("pairs", "pairs", text.count),
    Column("_verdict", "", str),
)


def comparison_figures(report: Report) -> list[Figure]:
    """Return one figure for each calibration that is compared with the first."""
    drawn = []
    for at, found in enumerate(report.get("comparisons", ())):
        table = _comparison_table(at, found)
        if table:
            drawn.append(_comparison_figure(at, found, table))
    return drawn


def _comparison_figure(at: int, found: Row, table: list[tuple[str, Row]]) -> Figure:
    first, second = text.name(found["first"]), text.name(found["second"])
    clear = [row for _, row in table if row["_verdict"] != MAYBE_CHANCE]
    verdicts = {row["_verdict"] for row in clear}
    said = f"{second} and {first} do not differ clearly"
    if len(verdicts) == 1:
        said = f"{second} is {verdicts.pop()} than {first} in {len(clear)} of {len(table)} scores"
    elif verdicts:
        said = f"{second} is better than {first} in some scores and worse in others"
    return Figure(
        chart=COMPARISON,
        key=str(at),
        title=said,
        note=f"{second} minus {first}, on {text.name(found['on'])}; bars are two standard errors "
        "either way, and hold 0 where a difference may be chance.",
        data={
            "rows": [
                {
                    "place": place,
                    "label": f"{row['_what']}: {text.signed(row['mean'])} ± "
                    f"{text.figures(row['standard_error'], 2)}",
                    "mean": row["mean"],
                    "error": row["standard_error"],
                    "verdict": row["_verdict"],
                }
                for place, (_, row) in enumerate(table)
            ]
        },
        table=Table(COMPARISON_COLUMNS, table),
    )


def _comparison_table(at: int, found: Row) -> list[tuple[str, Row]]:
    place = pointer("comparisons", at, "events")
    return [
        (
            f"{place}/{k}/differences/{score}",
            {
                **event["differences"][score],
                "_what": f"{text.event(k)}, {told}",
                "_verdict": _comparison_verdict(event["differences"][score], score),
            },
        )
        for k, event in found["events"].items()
        for score, told in COMPARED_SCORES.items()
        if event["differences"].get(score, {}).get("standard_error")
    ]


def _comparison_verdict(difference: Row, score: str) -> str:
    found = verdict(difference, score)
    return MAYBE_CHANCE if found in TIES else found

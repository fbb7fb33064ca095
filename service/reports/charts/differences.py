"""Charts of differences: measures against the served one, calibrations against the first."""

from functools import partial

from howsure.statistics.comparison import PairedDifference
from service.reports.charts import text
from service.reports.charts.figure import Column, Figure, Report, Row, Table
from service.reports.located import Located, pointer
from service.reports.verdict import TIES, compared_verdict, verdict

MEASURES = "measures"
SERVED, TIED, DIFFERS = "served", "tied with it", "differs clearly"


MEASURES_COLUMNS = (
    Column("measure", str, "measure"),
    Column("", str, "verdict"),
    Column("NLL minus that of the served", text.signed, "difference.mean"),
    Column("± standard error", partial(text.figures, most=2), "difference.standard_error"),
    Column("NLL", text.number, "nll.value"),
    Column("AUROC", text.number, "auroc.value"),
    Column("runs of the model", text.count, "passes"),
    Column("ms a row", text.number, "ms_per_row"),
)


def measure_figures(report: Report) -> list[Figure]:
    """Return one figure an event that has several measures whose differences are known."""
    return [
        _measure_figure(k, event)
        for k, event in report["events"].items()
        if any(row.get("difference") for row in event["comparison"])
    ]


def _measure_figure(k: str, event: Row) -> Figure:
    compared = Located(event["comparison"], pointer("events", k, "comparison"))
    drawn = [
        (row, compared[at])
        for at, row in enumerate(event["comparison"])
        if row["served"] or row.get("difference")
    ]
    tied = [text.name(row["measure"]) for row, _ in drawn if _measure_verdict(row) == TIED]
    served = text.name(event["served"])
    ties = "no measure ties with it"
    if tied:
        ties = f"{text.enumerated(tied)} {'ties' if len(tied) == 1 else 'tie'} with it"
    return Figure(
        chart=MEASURES,
        key=k,
        title=f"{text.event(k)}: {served} serves; {ties}",
        note="How much larger the loss (negative log-likelihood) is than with the served measure. "
        "If a bar includes 0, the difference may be chance. Left is better.",
        data={"rows": [_measure_row(place, row) for place, (row, _) in enumerate(drawn)]},
        table=Table.of(
            MEASURES_COLUMNS, [({"verdict": _measure_verdict(row)}, at) for row, at in drawn]
        ),
    )


def _measure_verdict(row: Row) -> str:
    if row["served"]:
        return SERVED
    return TIED if verdict(row["difference"]) in TIES else DIFFERS


def _measure_row(place: int, row: Row) -> Row:
    difference = row.get("difference") or {"mean": 0.0, "standard_error": 0.0, "pairs": 1}
    cost = ""
    if row["ms_per_row"] is not None:
        runs = "1 run" if row["passes"] == 1 else f"{text.count(row['passes'])} runs"
        cost = f"  ({runs}, {text.figures(row['ms_per_row'], 2)} ms a row)"
    return {
        "place": place,
        "label": text.name(row["measure"]) + cost,
        "verdict": _measure_verdict(row),
        "mean": difference["mean"],
        "margin": PairedDifference(**difference).margin or 0.0,
    }


COMPARISON = "comparison"
# Beside "better" and "worse".
MAYBE_CHANCE = "may be chance"
NOT_JUDGED = "not judged"
COMPARED_SCORES = {"nll": "negative log-likelihood", "brier": "Brier", "accuracy": "accuracy"}
COMPARISON_COLUMNS = (
    Column("score", str, "score"),
    Column("difference", text.signed, "mean"),
    Column("± standard error", text.number, "standard_error"),
    Column("pairs", text.count, "pairs"),
    Column("", str, "verdict"),
)


def comparison_figures(report: Report) -> list[Figure]:
    """Return one figure for each calibration that is compared with the first."""
    drawn = []
    for at, found in enumerate(report.get("comparisons", ())):
        rows = _compared_scores(at, found)
        if rows:
            drawn.append(_comparison_figure(at, found, rows))
    return drawn


def _comparison_figure(at: int, found: Row, rows: list[Row]) -> Figure:
    first, second = text.name(found["first"]), text.name(found["second"])
    clear = [row["verdict"] for row in rows if row["verdict"] not in (MAYBE_CHANCE, NOT_JUDGED)]
    verdicts = set(clear)
    said = f"{second} and {first} do not differ clearly"
    undecided = {event["undecided"] for event in found["events"].values()}
    if "warnings" in undecided:
        said = f"{second} and {first} are not compared, because of warnings"
    elif "doubtful-set" in undecided:
        said = f"{second} and {first} are not compared, because the set looks wrong"
    elif undecided == {"too-rare"} and not verdicts:
        said = f"{second} and {first} are not compared, because errors are too few"
    elif undecided == {"accuracy"} and len(verdicts) == 1:
        said = (
            f"{second} is right {'more' if verdicts == {'better'} else 'less'} often than {first}"
        )
    elif len(verdicts) == 1:
        said = f"{second} is {verdicts.pop()} than {first} in {len(clear)} of {len(rows)} scores"
    elif verdicts:
        said = f"{second} is better than {first} in some scores and worse in others"
    return Figure(
        chart=COMPARISON,
        key=str(at),
        title=said,
        note=f"{second} minus {first}, on {found['on']}. A difference whose bar includes 0 may be "
        "chance.",
        data={
            "rows": [
                {
                    "place": place,
                    "label": f"{row['score']}: {text.signed(row['mean'])} ± "
                    f"{text.figures(row['standard_error'], 2)}",
                    "mean": row["mean"],
                    "margin": row["margin"],
                    "verdict": row["verdict"],
                }
                for place, row in enumerate(rows)
            ]
        },
        table=Table.of(
            COMPARISON_COLUMNS,
            [({name: row[name] for name in ("score", "verdict")}, row["at"]) for row in rows],
        ),
    )


def _compared_scores(at: int, found: Row) -> list[Row]:
    shown = Located(found["events"], pointer("comparisons", at, "events"))
    return [
        {
            **difference,
            "margin": PairedDifference(**difference).margin,
            "at": shown[k]["differences"][score],
            "score": f"{text.event(k)}, {told}",
            "verdict": _comparison_verdict(event, score),
        }
        for k, event in found["events"].items()
        for score, told in COMPARED_SCORES.items()
        if (difference := event["differences"].get(score, {})).get("standard_error")
    ]


def _comparison_verdict(event: Row, score: str) -> str:
    found = compared_verdict(event, score)
    if found is None:
        return NOT_JUDGED
    return MAYBE_CHANCE if found in TIES else found

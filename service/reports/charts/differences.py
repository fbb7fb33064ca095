"""Charts of differences: measures against the served one, calibrations against the first."""

from functools import partial

from howsure.pictures.charts.differences import Difference, differences
from howsure.pictures.elements import Shape
from howsure.pictures.palette import Ink
from howsure.report.event import ComparedMeasure, Event
from howsure.report.report import Report
from howsure.report.words import text
from howsure.report.words.verdict import TIES, compared_verdict, verdict
from howsure.statistics.comparison import PairedDifference
from service.reports.charts.figure import Column, Figure, Row, Table
from service.reports.comparison.comparisons import Comparisons
from service.reports.located import Located, pointer

MEASURES = "measures"
SERVED, TIED, DIFFERS = "served", "tied with it", "differs clearly"
MEASURE_LOOKS: dict[str, tuple[Shape, Ink]] = {
    SERVED: ("diamond", "ink"),
    TIED: ("circle", "blue"),
    DIFFERS: ("square", "orange"),
}

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
        for k, event in report.events.items()
        if any(row.difference for row in event.comparison)
    ]


def _measure_figure(k: str, event: Event) -> Figure:
    compared = Located(event.comparison, pointer("events", k, "comparison"))
    drawn = [
        (row, compared[at])
        for at, row in enumerate(event.comparison)
        if row.served or row.difference
    ]
    tied = [text.name(row.measure) for row, _ in drawn if _measure_verdict(row) == TIED]
    served = text.name(event.served)
    ties = "no measure ties with it"
    if tied:
        ties = f"{text.enumerated(tied)} {'ties' if len(tied) == 1 else 'tie'} with it"
    return Figure(
        chart=MEASURES,
        key=k,
        title=f"{text.event(k)}: {served} serves; {ties}",
        note="How much larger the loss (negative log-likelihood) is than with the served measure. "
        "If a bar includes 0, the difference may be chance. Left is better.",
        picture=differences(
            [_measure_row(row) for row, _ in drawn],
            MEASURE_LOOKS,
            "negative log-likelihood more than the served",
        ),
        table=Table.of(
            MEASURES_COLUMNS, [({"verdict": _measure_verdict(row)}, at) for row, at in drawn]
        ),
    )


def _measure_verdict(row: ComparedMeasure) -> str:
    if row.served or row.difference is None:
        return SERVED
    return TIED if verdict(row.difference) in TIES else DIFFERS


def _measure_row(row: ComparedMeasure) -> Difference:
    difference = row.difference or PairedDifference(0.0, 0.0, 1)
    cost = ""
    if row.ms_per_row is not None:
        runs = "1 run" if row.passes == 1 else f"{text.count(row.passes)} runs"
        cost = f"  ({runs}, {text.figures(row.ms_per_row, 2)} ms a row)"
    return Difference(
        text.name(row.measure) + cost,
        difference.mean,
        difference.margin or 0.0,
        _measure_verdict(row),
    )


COMPARISON = "comparison"
# Beside "better" and "worse".
MAYBE_CHANCE = "may be chance"
NOT_JUDGED = "not judged"
COMPARISON_LOOKS: dict[str, tuple[Shape, Ink]] = {
    "better": ("triangle", "blue"),
    MAYBE_CHANCE: ("circle", "grey"),
    "worse": ("down", "orange"),
    NOT_JUDGED: ("square", "grey"),
}
COMPARED_SCORES = {"nll": "negative log-likelihood", "brier": "Brier", "accuracy": "accuracy"}
COMPARISON_COLUMNS = (
    Column("score", str, "score"),
    Column("difference", text.signed, "mean"),
    Column("± standard error", text.number, "standard_error"),
    Column("pairs", text.count, "pairs"),
    Column("", str, "verdict"),
)


def comparison_figures(report: Comparisons) -> list[Figure]:
    """Return one figure for each calibration that is compared with the first."""
    drawn = []
    for at, comparison in enumerate(report.comparisons):
        rows = _compared_scores(at, comparison)
        if rows:
            drawn.append(_comparison_figure(at, comparison, rows))
    return drawn


def _comparison_figure(at: int, comparison: Row, rows: list[Row]) -> Figure:
    first, second = text.name(comparison["first"]), text.name(comparison["second"])
    clear = [row["verdict"] for row in rows if row["verdict"] not in (MAYBE_CHANCE, NOT_JUDGED)]
    verdicts = set(clear)
    title = f"{second} and {first} do not differ clearly"
    undecided = {event["undecided"] for event in comparison["events"].values()}
    if "warnings" in undecided:
        title = f"{second} and {first} are not compared, because of warnings"
    elif "doubtful-set" in undecided:
        title = f"{second} and {first} are not compared, because the set looks wrong"
    elif undecided == {"too-rare"} and not verdicts:
        title = f"{second} and {first} are not compared, because errors are too few"
    elif undecided == {"accuracy"} and len(verdicts) == 1:
        title = (
            f"{second} is right {'more' if verdicts == {'better'} else 'less'} often than {first}"
        )
    elif len(verdicts) == 1:
        title = f"{second} is {verdicts.pop()} than {first} in {len(clear)} of {len(rows)} scores"
    elif verdicts:
        title = f"{second} is better than {first} in some scores and worse in others"
    return Figure(
        chart=COMPARISON,
        key=str(at),
        title=title,
        note=f"{second} minus {first}, on {comparison['on']}. A difference whose bar "
        "includes 0 may be chance.",
        picture=differences(
            [
                Difference(
                    f"{row['score']}: {text.signed(row['mean'])} ± "
                    f"{text.figures(row['standard_error'], 2)}",
                    row["mean"] / row["margin"],
                    1.0,
                    row["verdict"],
                )
                for row in rows
            ],
            COMPARISON_LOOKS,
            "difference, in the least that is clear",
        ),
        table=Table.of(
            COMPARISON_COLUMNS,
            [({name: row[name] for name in ("score", "verdict")}, row["at"]) for row in rows],
        ),
    )


def _compared_scores(at: int, comparison: Row) -> list[Row]:
    located = Located(comparison["events"], pointer("comparisons", at, "events"))
    return [
        {
            **difference,
            "margin": PairedDifference(**difference).margin,
            "at": located[k]["differences"][score],
            "score": f"{text.event(k)}, {name}",
            "verdict": _comparison_verdict(event, score),
        }
        for k, event in comparison["events"].items()
        for score, name in COMPARED_SCORES.items()
        if (difference := event["differences"].get(score, {})).get("standard_error")
    ]


def _comparison_verdict(event: Row, score: str) -> str:
    outcome = compared_verdict(event, score)
    if outcome is None:
        return NOT_JUDGED
    return MAYBE_CHANCE if outcome in TIES else outcome

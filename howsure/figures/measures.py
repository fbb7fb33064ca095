"""Charts of measures against the served one."""

from functools import partial

from howsure.figures.figure import Column, Figure, Table
from howsure.pictures.charts.differences import Difference, differences
from howsure.pictures.elements import Shape
from howsure.pictures.palette import Ink
from howsure.report.event import ComparedMeasure, Event
from howsure.report.located import Located, pointer
from howsure.report.report import Report
from howsure.report.words import text
from howsure.report.words.verdict import TIES, verdict
from howsure.statistics.comparison import PairedDifference

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

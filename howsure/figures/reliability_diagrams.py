"""Reliability diagrams by choice of bins."""

from howsure.figures.figure import Column, Figure, Served, Table, served_events
from howsure.figures.reliability import CORRECT, SETS
from howsure.pictures.charts.calibration import FEW, Spot, reliability_diagram
from howsure.report.located import Located
from howsure.report.report import Report
from howsure.report.words import text
from howsure.statistics.diagnostics.reliability import Reliability
from howsure.statistics.diagnostics.reliability_diagrams import DiagramBins, DiagramKind

RELIABILITY_DIAGRAMS = "reliability_diagrams"
MOST_ROWS = 20  # of a table, before and after calibration each
WORDS: dict[DiagramKind, str] = {
    "equal_range_10": "10 ranges of equal width",
    "equal_range_50": "50 ranges of equal width",
    "equal_mass_50": "50 bins of equal size",
    "equal_mass_100": "100 bins of equal size",
    "adaptive": "adaptive bins",
}
COLUMNS = (
    Column("", str),
    Column("bin, the most probable first", text.count),
    Column("stated probability", text.percent),
    Column(f"share that was {CORRECT}", text.percent),
    Column(CORRECT, text.count),
    Column("samples", text.count),
)


def diagram_key(k: str, kind: DiagramKind) -> str:
    """Return the key of the figure of an event and a choice of bins."""
    return f"{k}-{kind.replace('_', '-')}"


def reliability_diagram_figures(report: Report) -> list[Figure]:
    """Return a figure for each choice of bins, of each event judged on held-out samples."""
    return [
        _figure(served, served.table.reliability, kind)
        for served in served_events(report)
        if served.table.reliability is not None
        for kind in served.table.reliability.diagrams or ()
    ]


def _figure(served: Served, reliability: Reliability, kind: DiagramKind) -> Figure:
    k, at = served.k, served.at["reliability"]["diagrams"][kind]
    diagram = (reliability.diagrams or {})[kind]
    before, after = diagram.before, diagram.after
    return Figure(
        chart=RELIABILITY_DIAGRAMS,
        key=diagram_key(k, kind),
        title=f"{text.event(k)}, {WORDS[kind]}: stated probabilities are off by "
        f"{text.percent(before.ece)} on average before calibration and {text.percent(after.ece)} "
        "after",
        note=f"{text.count(reliability.n_samples)} {SETS[reliability.held_out]}. "
        f"{_bins(before)} before calibration, {_bins(after)} after. "
        f"The bin furthest off is {text.percent(before.mce)} off before and "
        f"{text.percent(after.mce)} after. Larger points stand for more samples, faint ones "
        f"for fewer than {FEW}.",
        picture=reliability_diagram(_spots(before), _spots(after)),
        table=Table(
            COLUMNS,
            [*_rows("before", before, at["before"]), *_rows("after", after, at["after"])],
        ),
    )


def _bins(bins: DiagramBins) -> str:
    n_bins = len(bins.count)
    return "1 bin" if n_bins == 1 else f"{text.count(n_bins)} bins"


def _spots(bins: DiagramBins) -> list[Spot]:
    columns = zip(bins.said, bins.hits, bins.count, strict=True)
    return [Spot(said, hits / count, count) for said, hits, count in columns]


def _rows(side: str, bins: DiagramBins, at: Located) -> list[list[object]]:
    """Return rows for some of the bins, evenly spaced."""
    places = range(0, len(bins.count), -(-len(bins.count) // MOST_ROWS) or 1)
    rates = [spot.hit_rate for spot in _spots(bins)]
    return [[side, i + 1, at["said"][i], rates[i], at["hits"][i], at["count"][i]] for i in places]

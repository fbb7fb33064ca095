"""Charts of the bins: odds ratios, outcomes, and uncertainty against loss."""

from collections import Counter
from collections.abc import Sequence
from itertools import accumulate

from howsure.bins_document.table import Bin
from howsure.figures.figure import Column, Figure, Table, served_events
from howsure.pictures.charts import bins
from howsure.pictures.elements import Point
from howsure.pictures.palette import Ink
from howsure.report.event import Event
from howsure.report.located import Located, pointer
from howsure.report.measure import Measure
from howsure.report.report import Report
from howsure.report.words import text
from howsure.statistics.diagnostics.loss_scatter import LossScatter, Outcome
from howsure.statistics.measures import SCORE

ODDS_RATIO = "odds_ratio"
ODDS_RATIO_COLUMNS = (
    Column("bin, the most certain first", str, "bin"),
    Column("odds ratio", text.number, "odds_ratio"),
    Column("probability", text.percent, "probability"),
    Column("samples", text.count, "count"),
)


def odds_ratio_figures(report: Report) -> list[Figure]:
    """Return one figure an event, of the bins that are served and hold a sample."""
    return [_odds_ratio_figure(*served) for served in served_events(report)]


def _odds_ratio_figure(k: str, event: Event, table: Measure, at: Located) -> Figure:
    served = event.served
    drawn = [
        (place, row, row.odds_ratio)
        for place, row in enumerate(table.bins)
        if row.count and row.odds_ratio is not None
    ]
    eor = table.scores.get("eor")
    mean = None if eor is None else eor.pooled
    title = f"{text.event(k)}: odds of a correct answer, by bin of {text.name(served)}"
    if mean is not None:
        title = (
            f"{text.event(k)}: odds of a correct answer in a bin of {text.name(served)} differ "
            f"from those of all samples by a factor of {text.figures(mean, 3)} on average"
        )
    return Figure(
        chart=ODDS_RATIO,
        key=k,
        title=title,
        note="How much better or worse the odds of a correct answer are in each bin than over all "
        f"calibration samples ({text.percent(event.accuracy)} correct). Dashed line: the mean.",
        picture=bins.odds_ratios(
            {place + 1: _relative_odds(row, ratio, event) for place, row, ratio in drawn}, mean
        ),
        table=Table.of(
            ODDS_RATIO_COLUMNS, [({"bin": place + 1}, at["bins"][place]) for place, *_ in drawn]
        ),
    )


def _relative_odds(row: Bin, ratio: float, event: Event) -> float:
    """Return the odds ratio of a bin, below 1 where fewer answers are correct than over all."""
    return ratio if row.probability >= event.accuracy else 1.0 / ratio


MEASURE_ODDS = "measure_odds"
MOST_MEASURES = 4
MEASURE_ODDS_COLUMNS = (
    Column("measure", str),
    Column("mean factor", text.number),
    Column("odds ratio of the most certain bin", text.number),
    Column("of the least certain bin", text.number),
    Column("bins", text.count),
)


def measure_odds_figures(report: Report) -> list[Figure]:
    """Return one figure an event with bins of several measures: the served one, then the best."""
    figures = []
    for k, event, _, _ in served_events(report):
        ranked = [event.served, *(row.measure for row in event.comparison), *event.measures]
        names = [name for name in dict.fromkeys(ranked) if event.measures[name].bins]
        if len(names) > 1:
            at = Located(event.measures, pointer("events", k, "measures"))
            figures.append(_measure_odds_figure(k, event, names[:MOST_MEASURES], at))
    return figures


def _measure_odds_figure(k: str, event: Event, names: list[str], at: Located) -> Figure:
    tables = [(text.name(name), event.measures[name]) for name in names]
    enumerated = text.enumerated([name for name, _ in tables])
    scores = [(table.scores.get("eor"), name) for name, table in tables]
    means = [(eor.pooled, name) for eor, name in scores if eor is not None and eor.pooled]
    title = f"{text.event(k)}: odds of a correct answer, by bins of {len(names)} measures"
    if means:
        mean, best = max(means)
        title = (
            f"{text.event(k)}: {best} has the bins that tell most apart, by a mean factor of "
            f"{text.figures(mean, 3)}"
        )
    return Figure(
        chart=MEASURE_ODDS,
        key=k,
        title=title,
        note="How much better or worse the odds of a correct answer are in the bins of "
        f"{enumerated} than over all calibration samples ({text.percent(event.accuracy)} correct). "
        f"{text.name(event.served)} serves.",
        picture=bins.odds_by_share([(name, _odds(table, event)) for name, table in tables]),
        table=Table(MEASURE_ODDS_COLUMNS, [_odds_row(name, at[name]) for name in names]),
    )


def _odds(table: Measure, event: Event) -> list[Point]:
    """Return the share of samples up to the middle of each bin, and the relative odds in it."""
    counts: list[float | None] = [row.count for row in table.bins]
    if table.effective is not None and table.effective.shares is not None:
        counts = table.effective.shares
    sizes = [size or 0.0 for size in counts]
    total = sum(sizes) or 1.0
    return [
        ((end - size / 2) / total, _relative_odds(row, row.odds_ratio, event))
        for row, size, end in zip(table.bins, sizes, accumulate(sizes), strict=True)
        if size and row.odds_ratio is not None
    ]


def _odds_row(name: str, at: Located) -> list[Located | str | int]:
    rows = at["bins"]
    ends = [rows[place]["odds_ratio"] for place in (0, len(rows) - 1)]
    return [text.name(name), at["scores"]["eor"]["pooled"], *ends, len(rows)]


LOSS_SCATTER = "loss_scatter"
CORRECT, WRONG, IN_TOP_5 = "correct", "wrong", "wrong, label in the Top 5"
TOP_5 = "5"
OUTCOMES = "outcomes"
OUTCOME_INKS: dict[str, Ink] = {WRONG: "orange", IN_TOP_5: "green", CORRECT: "blue"}


def outcome_figures(report: Report) -> list[Figure]:
    """Return one figure an event, of the bins that are served."""
    return [_outcome_figure(*served) for served in served_events(report) if served.table.bins]


def _outcome_figure(k: str, event: Event, table: Measure, at: Located) -> Figure:
    rows, near = table.bins, table.top5_hits
    counts = {
        WRONG: [row.count - row.hits - (near[i] if near else 0) for i, row in enumerate(rows)],
        **({} if near is None else {IN_TOP_5: near}),
        CORRECT: [row.hits for row in rows],
    }
    cells: dict[str, Sequence[int] | Sequence[Located] | Located] = {
        WRONG: counts[WRONG],
        IN_TOP_5: at["top5_hits"],
        CORRECT: [row["hits"] for row in at["bins"]],
    }
    errors = sum(row.count - row.hits for row in rows)
    half = rows[len(rows) // 2 :]
    late = sum(row.count - row.hits for row in half)
    served = text.name(event.served)
    title = f"{text.event(k)}: outcomes by bin of {served}, {text.count(errors)} wrong"
    if errors and len(rows) > 1:
        title = (
            f"{text.event(k)}: {text.percent(late / errors)} of the errors are in the "
            f"{text.count(len(half))} least certain of {text.count(len(rows))} bins of {served}"
        )
    return Figure(
        chart=OUTCOMES,
        key=k,
        title=title,
        note=f"Calibration samples in each bin, {text.count(sum(row.count for row in rows))} "
        f"together; from below: {'; '.join(counts)}.",
        picture=bins.outcomes([(name, OUTCOME_INKS[name], part) for name, part in counts.items()]),
        table=Table(
            [
                Column("bin, the most certain first", str),
                Column("samples", text.count),
                *(Column(name, text.count) for name in counts),
            ],
            [
                [place + 1, row["count"], *(cells[name][place] for name in counts)]
                for place, row in enumerate(at["bins"])
            ],
        ),
    )


LOSS_SCATTER_COLUMNS = (
    Column("outcome", str),
    Column("samples", text.count),
    Column("drawn", text.count),
    Column("of infinite loss, not drawn", text.count),
)


def scatter_figures(report: Report) -> list[Figure]:
    """Return one figure an event, of the measure that is served.

    The loss of pairs is a function of the score: two curves, which say nothing.
    """
    return [
        _scatter_figure(k, event, table.curves.scatter, at["curves"]["scatter"], _outcomes(report))
        for k, event, table, at in served_events(report)
        if table.curves.scatter is not None and event.served != SCORE
    ]


def _outcomes(report: Report) -> dict[str, str]:
    """Return the words for each outcome; without a Top-5 event all errors are alike."""
    return {
        "hit": CORRECT,
        "top5_hit": IN_TOP_5 if TOP_5 in report.events else WRONG,
        "miss": WRONG,
    }


def _scatter_figure(
    k: str, event: Event, scatter: LossScatter, located: Located, outcomes: dict[str, str]
) -> Figure:
    samples: dict[str, list[Point]] = {name: [] for name in outcomes.values()}
    drawn: dict[str, Outcome] = {key: getattr(scatter, key) for key in outcomes}
    for key, name in outcomes.items():
        samples[name] += zip(drawn[key].uncertainty, drawn[key].loss, strict=True)
    table = [
        [outcome, located[key]["count"], len(drawn[key].loss), located[key]["infinite"]]
        for key, outcome in outcomes.items()
        if drawn[key].count or outcome != IN_TOP_5
    ]
    totals: Counter[str] = Counter()
    for key, outcome in outcomes.items():
        totals[outcome] += drawn[key].count
    counts = text.enumerated([f"{text.count(n)} {outcome}" for outcome, n in totals.items() if n])
    return Figure(
        chart=LOSS_SCATTER,
        key=k,
        title=_scatter_title(k, event),
        note=f"Uncertainty is {text.name(event.served)}. At most 200 random samples of each "
        f"outcome are drawn, of {counts} in the calibration set. Both axes are square-root scales.",
        picture=bins.loss_scatter(
            [(name, samples[name]) for name in (CORRECT, WRONG, IN_TOP_5) if name in samples]
        ),
        table=Table(LOSS_SCATTER_COLUMNS, table),
    )


def _scatter_title(k: str, event: Event) -> str:
    auroc = event.figures.error_detection.served
    if auroc is None:
        return f"{text.event(k)}: loss and uncertainty"
    on = "on the evaluation set" if event.figures.set == "evaluation" else "cross-validated"
    return (
        f"{text.event(k)}: an error is more uncertain than a correct answer in "
        f"{text.percent(auroc.mean)} of pairs (AUROC, {on})"
    )

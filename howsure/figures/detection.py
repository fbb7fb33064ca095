"""Charts of the detection of errors: ROC, and precision and recall."""

from howsure.figures.figure import Column, Figure, Served, Table, served_events
from howsure.pictures.charts.detection import detection
from howsure.pictures.elements import Point
from howsure.report.located import Located
from howsure.report.parts import Numbers
from howsure.report.report import Report
from howsure.report.words import text
from howsure.statistics.measures.scale import scale_of

ROC = "roc"
PRECISION_RECALL = "precision_recall"
SHOWN_POINTS = 20
FOUND = "share of all errors above the threshold"


def roc_figures(report: Report) -> list[Figure]:
    """Return one figure an event, of the measure that is served, where its curve is defined."""
    return [
        _figure(
            served,
            ROC,
            ("false_positive_rate", "true_positive_rate"),
            ("share of correct answers above the threshold", FOUND),
            [(0.0, 0.0), (1.0, 1.0)],
        )
        for served in served_events(report)
        if served.table.curves.roc is not None
    ]


def precision_recall_figures(report: Report) -> list[Figure]:
    """Return the same as precision and recall of errors."""
    return [
        _figure(
            served,
            PRECISION_RECALL,
            ("recall", "precision"),
            (FOUND, "share of errors among these answers"),
            [(0.0, 1.0 - served.event.accuracy), (1.0, 1.0 - served.event.accuracy)],
        )
        for served in served_events(report)
        if served.table.curves.precision_recall is not None
    ]


def _figure(
    served: Served, chart: str, names: tuple[str, str], titles: tuple[str, str], chance: list[Point]
) -> Figure:
    k, event, table, at = served
    x, y = (_numbers(getattr(getattr(table.curves, chart), name)) for name in names)
    score = table.scores.get("auroc" if chart == ROC else "aupr")
    value = None if score is None else score.pooled if score.mean is None else score.mean
    measure = text.name(event.served)
    title = f"{text.event(k)}: errors found by {measure}"
    if value is not None and chart == ROC:
        title = (
            f"{text.event(k)}: an error is less certain than a correct answer, by {measure}, in "
            f"{text.percent(value)} of pairs"
        )
    elif value is not None:
        title = (
            f"{text.event(k)}: {text.percent(value)} of the answers above a threshold on {measure} "
            "are errors, on average"
        )
    step = max(len(x) // SHOWN_POINTS, 1)
    scale = scale_of(event.served)
    return Figure(
        chart=chart,
        key=k,
        title=title,
        note="Calibration samples whose uncertainty is above a threshold are called errors; each "
        "point is a threshold. Dashed: what chance would give.",
        picture=detection(list(zip(x, y, strict=True)), chance, *titles),
        table=Table(
            (
                Column(titles[0], text.percent),
                Column(titles[1], text.percent),
                Column("threshold", lambda end: text.number(scale.of(end))),
            ),
            [_cells(at["curves"][chart], names, place) for place in range(0, len(x), step)],
        ),
    )


def _numbers(values: Numbers) -> list[float]:
    return [0.0 if value is None else value for value in values]


def _cells(curve: Located, names: tuple[str, str], place: int) -> list[Located]:
    return [curve[name][place] for name in (*names, "threshold")]

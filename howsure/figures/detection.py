"""Charts of the detection of errors: ROC, and precision and recall."""

import math

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
SCORES = {ROC: "auroc", PRECISION_RECALL: "aupr"}
TABLE_STEPS = 20
RECALL_TITLE = "share of all errors above the threshold"


def roc_figures(report: Report) -> list[Figure]:
    """Return one figure an event, of the measure that is served, where its curve is defined."""
    return [
        _figure(
            served,
            ROC,
            ("false_positive_rate", "true_positive_rate"),
            ("share of correct answers above the threshold", RECALL_TITLE),
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
            (RECALL_TITLE, "share of errors among these answers"),
            [(0.0, 1.0 - served.event.accuracy), (1.0, 1.0 - served.event.accuracy)],
        )
        for served in served_events(report)
        if served.table.curves.precision_recall is not None
    ]


def _figure(
    served: Served, chart: str, names: tuple[str, str], titles: tuple[str, str], chance: list[Point]
) -> Figure:
    k, event, table, at = served
    x, y = (_coordinates(getattr(getattr(table.curves, chart), name)) for name in names)
    height = _cross_validated_height(served, chart)
    step = max(len(x) // TABLE_STEPS, 1)
    scale = scale_of(event.served)
    return Figure(
        chart=chart,
        key=k,
        title=_title(served, chart, height),
        note="Calibration samples whose uncertainty is above a threshold are called errors; each "
        f"point is a threshold. Dashed: what chance would give.{_origin(chart, height)}",
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


def _cross_validated_height(served: Served, chart: str) -> float | None:
    """Return the average height of the curve: AUROC, or average precision.

    Scores of a table are always cross-validated; None if the report has none.
    """
    score = served.table.scores.get(SCORES[chart])
    if score is None:
        return None
    return score.pooled if score.mean is None else score.mean


def _title(served: Served, chart: str, height: float | None) -> str:
    event, measure = text.event(served.k), text.name(served.event.served)
    if height is None:
        return f"{event}: detection of errors by {measure}"
    if chart == ROC:
        return f"{event}: of the errors, {measure} calls {text.percent(height)} errors on average"
    return (
        f"{event}: of the answers that {measure} calls errors, {text.percent(height)} are errors "
        "on average"
    )


def _origin(chart: str, height: float | None) -> str:
    """Return where the figure of the title is from; nothing if the title has none."""
    if height is None:
        return ""
    return (
        f" The title's figure is the average height of the curve ({SCORES[chart].upper()}), "
        "cross-validated."
    )


def _coordinates(values: Numbers) -> list[float]:
    """Return values, not a number where they are undefined: pictures leave such points out."""
    return [math.nan if value is None else value for value in values]


def _cells(curve: Located, names: tuple[str, str], place: int) -> list[Located]:
    return [curve[name][place] for name in (*names, "threshold")]

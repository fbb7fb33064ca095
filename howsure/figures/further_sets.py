"""Charts of further sets beside the calibration set: Ovadia et al., Figures 1 and 3."""

from collections.abc import Sequence

from howsure.figures.figure import Column, Figure, Table
from howsure.pictures.charts import further_sets
from howsure.pictures.elements import Point
from howsure.report.further_set import FurtherSet
from howsure.report.located import Located, pointer
from howsure.report.report import Report
from howsure.report.words import text
from howsure.report.words.disproof import OUTCOMES
from howsure.statistics.model_scores import ConfidenceRow
from howsure.statistics.shift.population import Histogram
from howsure.statistics.shift.result import ConfidenceCount

HISTOGRAM = "histogram"
KINDS = {"confidence": "largest softmax probability", "entropy": "entropy, nats"}
Rows = Sequence[ConfidenceRow] | Sequence[ConfidenceCount]
HISTOGRAM_COLUMNS = (
    Column("from", text.number),
    Column("to", text.number),
    Column("samples of this set", text.count),
    Column("of the calibration set", text.count),
)


def histogram_figures(report: Report) -> list[Figure]:
    """Return a figure of confidence and one of entropy for each further set that has them."""
    return [
        _histogram_figure(at, evaluation, kind)
        for at, evaluation in enumerate(report.evaluations)
        for kind in KINDS
        if evaluation.role == "traffic" and getattr(evaluation, kind)
    ]


def _histogram_figure(at: int, evaluation: FurtherSet, kind: str) -> Figure:
    histogram: Histogram = getattr(evaluation, kind)
    located = Located(histogram, pointer("evaluations", at, kind))
    edges = list(located["edges"])
    columns = (edges[:-1], edges[1:], located["counts"], located["calibration_counts"])
    outcome = OUTCOMES[evaluation.outcome]
    return Figure(
        chart=HISTOGRAM,
        key=f"{kind}-{at}",
        title=f"“{text.name(evaluation.name)}” {outcome}: {KINDS[kind]}",
        note=f"Shares of {text.count(evaluation.samples)} samples of this set and of "
        f"{text.count(sum(histogram.calibration_counts))} of the calibration set.",
        picture=further_sets.histogram(
            histogram.edges,
            _shares_of(histogram.calibration_counts),
            _shares_of(histogram.counts),
            KINDS[kind],
        ),
        table=Table(HISTOGRAM_COLUMNS, list(zip(*columns, strict=True))),
    )


def _shares_of(counts: Sequence[int]) -> list[float]:
    return [count / max(sum(counts), 1) for count in counts]


ABOVE_CONFIDENCE = "above_confidence"
TITLE_CONFIDENCE = 0.9
AT_OR_ABOVE = f"at or above a confidence of {TITLE_CONFIDENCE}"


def above_confidence_figures(report: Report) -> list[Figure]:
    """Return the share above each confidence of every further set, and the accuracy if labelled."""
    figures = []
    for at, evaluation in enumerate(report.evaluations):
        if evaluation.role != "traffic":
            continue
        if evaluation.above_confidence:
            figures.append(_shares(at, evaluation))
        calibration = report.model_scores.get("calibration")
        if evaluation.by_confidence and calibration is not None:
            ours = evaluation.by_confidence
            figures.append(_accuracies(at, evaluation, ours, calibration.by_confidence))
    return figures


def _shares(at: int, evaluation: FurtherSet) -> Figure:
    rows = evaluation.above_confidence
    return Figure(
        chart=ABOVE_CONFIDENCE,
        key=f"share-{at}",
        title=f"“{text.name(evaluation.name)}”: {_percent_at(rows, 'share')} are {AT_OR_ABOVE}; "
        f"of the calibration set, {_percent_at(rows, 'calibration_share')}",
        note="The model's own softmax, before calibration. If a shifted set is as confident as the "
        "calibration set, the model does not notice the shift.",
        picture=further_sets.above_confidence(
            _curve(rows, "calibration_share"), _curve(rows, "share"), "share of the set"
        ),
        table=Table.of(
            (
                Column("confidence", text.number, "confidence"),
                Column("samples", text.count, "count"),
                Column("share of this set", text.percent, "share"),
                Column("of the calibration set", text.percent, "calibration_share"),
            ),
            [({}, row) for row in Located(rows, pointer("evaluations", at, "above_confidence"))],
        ),
    )


def _accuracies(
    at: int,
    evaluation: FurtherSet,
    rows: Sequence[ConfidenceRow],
    calibration: Sequence[ConfidenceRow],
) -> Figure:
    ours = Located(rows, pointer("evaluations", at, "by_confidence"))
    theirs = Located(calibration, pointer("model_scores", "calibration", "by_confidence"))
    return Figure(
        chart=ABOVE_CONFIDENCE,
        key=f"accuracy-{at}",
        title=f"“{text.name(evaluation.name)}”: accuracy "
        f"{_percent_at(rows, 'accuracy')} {AT_OR_ABOVE}; "
        f"of the calibration set, {_percent_at(calibration, 'accuracy')}",
        note="Top-1, by the model's own softmax. Confidences that no sample reaches are not drawn.",
        picture=further_sets.above_confidence(
            _curve(calibration, "accuracy"),
            _curve(rows, "accuracy"),
            "accuracy",
        ),
        table=Table.of(
            (
                Column("confidence", text.number, "confidence"),
                Column("samples", text.count, "count"),
                Column("accuracy, this set", text.percent, "accuracy"),
                Column("accuracy, calibration set", text.percent, "other"),
            ),
            [({"other": their["accuracy"]}, our) for our, their in zip(ours, theirs, strict=True)],
        ),
    )


def _percent_at(rows: Rows, key: str) -> str:
    return text.percent(
        next((getattr(row, key) for row in rows if row.confidence == TITLE_CONFIDENCE), None)
    )


def _curve(rows: Rows, key: str) -> list[Point]:
    """Return a value by confidence, without confidences that no sample reaches."""
    return [(row.confidence, getattr(row, key)) for row in rows if getattr(row, key) is not None]

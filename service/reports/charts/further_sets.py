"""Charts of further sets beside the calibration set: Ovadia et al., Figures 1 and 3."""

from howsure.pictures.charts import further_sets
from howsure.pictures.elements import Point
from service.reports.charts import text
from service.reports.charts.figure import Column, Figure, Report, Row, Table
from service.reports.located import Located, pointer

HISTOGRAM = "histogram"
KINDS = {"confidence": "largest softmax probability", "entropy": "entropy, nats"}
OUTCOMES = {
    "shifted": "is shifted",
    "worse": "is worse than stated",
    "miscalibrated": "is not as stated",
    "better": "is better than stated",
    "alike": "shows no shift",
}
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
        for at, evaluation in enumerate(report["evaluations"])
        for kind in KINDS
        if evaluation.get(kind)
    ]


def _histogram_figure(at: int, evaluation: Row, kind: str) -> Figure:
    histogram = evaluation[kind]
    located = Located(histogram, pointer("evaluations", at, kind))
    edges = list(located["edges"])
    columns = (edges[:-1], edges[1:], located["counts"], located["calibration_counts"])
    # Results of earlier releases have no outcome.
    outcome = OUTCOMES[
        evaluation.get("outcome") or ("shifted" if evaluation["shifted"] else "alike")
    ]
    return Figure(
        chart=HISTOGRAM,
        key=f"{kind}-{at}",
        title=f"“{text.name(evaluation['name'])}” {outcome}: {KINDS[kind]}",
        note=f"Shares of {text.count(evaluation['samples'])} samples of this set and of "
        f"{text.count(sum(histogram['calibration_counts']))} of the calibration set.",
        picture=further_sets.histogram(
            histogram["edges"],
            _shares_of(histogram["calibration_counts"]),
            _shares_of(histogram["counts"]),
            KINDS[kind],
        ),
        table=Table(HISTOGRAM_COLUMNS, list(zip(*columns, strict=True))),
    )


def _shares_of(counts: list[int]) -> list[float]:
    return [count / max(sum(counts), 1) for count in counts]


ABOVE_CONFIDENCE = "above_confidence"
TITLE_CONFIDENCE = 0.9
AT_OR_ABOVE = f"at or above a confidence of {TITLE_CONFIDENCE}"


def above_confidence_figures(report: Report) -> list[Figure]:
    """Return the share above each confidence of every further set, and the accuracy if labelled."""
    figures = []
    for at, evaluation in enumerate(report["evaluations"]):
        if evaluation.get("above_confidence"):
            figures.append(_shares(at, evaluation))
        calibration = (report["model_scores"].get("calibration") or {}).get("by_confidence")
        if evaluation.get("by_confidence") and calibration:
            figures.append(_accuracies(at, evaluation, calibration))
    return figures


def _shares(at: int, evaluation: Row) -> Figure:
    rows = evaluation["above_confidence"]
    return Figure(
        chart=ABOVE_CONFIDENCE,
        key=f"share-{at}",
        title=f"“{text.name(evaluation['name'])}”: {_percent_at(rows, 'share')} are {AT_OR_ABOVE}; "
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


def _accuracies(at: int, evaluation: Row, calibration: list[Row]) -> Figure:
    ours = Located(evaluation["by_confidence"], pointer("evaluations", at, "by_confidence"))
    theirs = Located(calibration, pointer("model_scores", "calibration", "by_confidence"))
    return Figure(
        chart=ABOVE_CONFIDENCE,
        key=f"accuracy-{at}",
        title=f"“{text.name(evaluation['name'])}”: accuracy "
        f"{_percent_at(evaluation['by_confidence'], 'accuracy')} {AT_OR_ABOVE}; "
        f"of the calibration set, {_percent_at(calibration, 'accuracy')}",
        note="Top-1, by the model's own softmax. Confidences that no sample reaches are not drawn.",
        picture=further_sets.above_confidence(
            _curve(calibration, "accuracy"),
            _curve(evaluation["by_confidence"], "accuracy"),
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


def _percent_at(rows: list[Row], key: str) -> str:
    return text.percent(
        next((row[key] for row in rows if row["confidence"] == TITLE_CONFIDENCE), None)
    )


def _curve(rows: list[Row], key: str) -> list[Point]:
    """Return a value by confidence, without confidences that no sample reaches."""
    return [(row["confidence"], row[key]) for row in rows if row[key] is not None]

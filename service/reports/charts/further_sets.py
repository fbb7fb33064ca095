"""Charts of further sets beside the calibration set: Ovadia et al., Figures 1 and 3."""

from service.reports.charts import text
from service.reports.charts.figure import Column, Figure, Report, Row, Table
from service.reports.located import Located, pointer

HISTOGRAM = "histogram"
KINDS = {"confidence": "largest softmax probability", "entropy": "entropy, nats"}
SAID = {
    "shifted": "is shifted",
    "worse": "is worse than stated",
    "miscalibrated": "is not as stated",
    "better": "is better than stated",
    "alike": "shows no shift",
}
KNOWN, FURTHER = "calibration set", "this set"
HISTOGRAM_COLUMNS = (
    Column("from", text.number),
    Column("to", text.number),
    Column("samples of this set", text.count),
    Column("of the calibration set", text.count),
)


def histogram_figures(report: Report) -> list[Figure]:
    """Return a figure of confidence and one of entropy for each further set that has them."""
    return [
        _histogram_figure(at, found, kind)
        for at, found in enumerate(report["evaluations"])
        for kind in KINDS
        if found.get(kind)
    ]


def _histogram_figure(at: int, found: Row, kind: str) -> Figure:
    histogram = found[kind]
    shown = Located(histogram, pointer("evaluations", at, kind))
    edges = list(shown["edges"])
    cells = list(zip(histogram["edges"], histogram["edges"][1:], strict=False))
    columns = (edges[:-1], edges[1:], shown["counts"], shown["calibration_counts"])
    sides = {KNOWN: histogram["calibration_counts"], FURTHER: histogram["counts"]}
    # Results of earlier releases have no outcome.
    said = SAID[found.get("outcome") or ("shifted" if found["shifted"] else "alike")]
    return Figure(
        chart=HISTOGRAM,
        key=f"{kind}-{at}",
        title=f"“{text.name(found['name'])}” {said}: {KINDS[kind]}",
        note=f"Shares of {text.count(found['samples'])} samples of this set and of "
        f"{text.count(sum(histogram['calibration_counts']))} of the calibration set, on a "
        "square-root scale.",
        data={
            "rows": [
                {"from": lower, "to": upper, "count": count, "n": sum(counts), "of": side}
                for side, counts in sides.items()
                for (lower, upper), count in zip(cells, counts, strict=True)
            ]
        },
        table=Table(HISTOGRAM_COLUMNS, list(zip(*columns, strict=True))),
    )


ABOVE_CONFIDENCE = "above_confidence"
TITLE_CONFIDENCE = 0.9
AT_OR_ABOVE = f"at or above a confidence of {TITLE_CONFIDENCE}"


def above_confidence_figures(report: Report) -> list[Figure]:
    """Return the share above each confidence of every further set, and the accuracy if labelled."""
    drawn = []
    for at, found in enumerate(report["evaluations"]):
        if found.get("above_confidence"):
            drawn.append(_shares(at, found))
        known = (report["model_scores"].get("calibration") or {}).get("by_confidence")
        if found.get("by_confidence") and known:
            drawn.append(_accuracies(at, found, known))
    return drawn


def _shares(at: int, found: Row) -> Figure:
    rows = found["above_confidence"]
    return Figure(
        chart=ABOVE_CONFIDENCE,
        key=f"share-{at}",
        title=f"“{text.name(found['name'])}”: {_percent_at(rows, 'share')} are {AT_OR_ABOVE}; "
        f"of the calibration set, {_percent_at(rows, 'calibration_share')}",
        note="The model's own softmax, before calibration. If a shifted set is as confident as the "
        "calibration set, the model does not notice the shift.",
        data=_data(rows, "share", rows, "calibration_share"),
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


def _accuracies(at: int, found: Row, known: list[Row]) -> Figure:
    ours = Located(found["by_confidence"], pointer("evaluations", at, "by_confidence"))
    theirs = Located(known, pointer("model_scores", "calibration", "by_confidence"))
    return Figure(
        chart=ABOVE_CONFIDENCE,
        key=f"accuracy-{at}",
        title=f"“{text.name(found['name'])}”: accuracy "
        f"{_percent_at(found['by_confidence'], 'accuracy')} {AT_OR_ABOVE}; "
        f"of the calibration set, {_percent_at(known, 'accuracy')}",
        note="Top-1, by the model's own softmax. Confidences that no sample reaches are not drawn.",
        data=_data(found["by_confidence"], "accuracy", known, "accuracy"),
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


def _data(ours: list[Row], key: str, theirs: list[Row], other: str) -> dict[str, list[Row]]:
    sides = ((KNOWN, theirs, other), (FURTHER, ours, key))
    return {
        "rows": [
            {"confidence": row["confidence"], "value": row[name], "of": side}
            for side, rows, name in sides
            for row in rows
        ]
    }

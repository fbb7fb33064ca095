"""The chart of errors among accepted answers, by label and predicted class."""

from howsure.figures.figure import Column, Figure, Table
from howsure.numbers import share
from howsure.pictures.charts import confusion
from howsure.report.event import Confusion
from howsure.report.located import Located
from howsure.report.report import Report
from howsure.report.words import text

CONFUSION = "confusion"
OTHERS = "others"
COLUMNS = (
    Column("label", str, "label"),
    Column("predicted class", str, "predicted"),
    Column("accepted errors", text.count, "count"),
)


def confusion_figures(report: Report) -> list[Figure]:
    """Return the figure of Top-1; none if its records were not read."""
    names = report.provenance.config.get("classes") or []
    events = Located(report)["events"]
    weighted = "weight" in report.provenance.data.get("design", ())
    return [
        _figure(k, event.confusion, events[k]["confusion"]["pairs"], names, weighted=weighted)
        for k, event in report.events.items()
        if event.confusion
    ]


def _figure(
    k: str, matrix: Confusion, pairs: Located, names: list[str], *, weighted: bool
) -> Figure:
    names_drawn = [text.name(names[index]) for index in matrix.classes]
    names_drawn += [OTHERS] * (len(matrix.counts) - len(names_drawn))
    return Figure(
        chart=CONFUSION,
        key=k,
        title=_title(k, matrix, names),
        note=f"Confusion matrix of {_answers(matrix)} on the calibration set: "
        f"{text.count(matrix.n_accepted)}, of which {text.count(matrix.n_errors)} are wrong. "
        "Correct answers are on the grey diagonal."
        + (" Classes with the most errors." if len(names_drawn) > len(matrix.classes) else "")
        + (" Samples are counted, without their weights." if weighted else ""),
        picture=confusion.confusion(names_drawn, matrix.counts),
        table=Table.of(
            COLUMNS,
            [
                (
                    {name: text.name(names[getattr(row, name)]) for name in ("label", "predicted")},
                    at,
                )
                for row, at in zip(matrix.pairs, pairs, strict=True)
            ],
        ),
    )


def _answers(matrix: Confusion) -> str:
    """Return which answers are counted."""
    if matrix.threshold is None:
        return "all answers"
    if matrix.operating_point is not None:
        return f"the answers that the operating point “{text.name(matrix.operating_point)}” accepts"
    if matrix.max_risk is None:
        return "all accepted answers"
    return f"the answers accepted for an error rate of at most {share(matrix.max_risk)}"


def _title(k: str, matrix: Confusion, names: list[str]) -> str:
    if not matrix.pairs:
        accepted = "answer" if matrix.threshold is None else "accepted answer"
        return f"{text.event(k)}: no {accepted} of the calibration set is wrong"
    first = matrix.pairs[0]
    label, predicted = text.name(names[first.label]), text.name(names[first.predicted])
    sentence = f"{text.event(k)}: “{label}” is taken for “{predicted}”"
    if first.count == 1:
        return f"{sentence} once; no error is more frequent"
    shared = [pair.count for pair in matrix.pairs].count(first.count) > 1
    rank = "no error is more frequent" if shared else "the most frequent error"
    return f"{sentence} {text.count(first.count)} times, {rank}"

"""The chart of errors among accepted answers, by label and predicted class."""

from service.reports.charts import text
from service.reports.charts.figure import Column, Figure, Report, Row, Table
from service.reports.located import Located
from service.reports.numbers import share

CONFUSION = "confusion"
OTHERS = "others"
CORRECT, WRONG = "correct", "wrong"
COLUMNS = (
    Column("label", str, "label"),
    Column("predicted class", str, "predicted"),
    Column("accepted errors", text.count, "count"),
)


def confusion_figures(report: Report) -> list[Figure]:
    """Return the figure of Top-1; none if its records were not read."""
    names = report["provenance"]["config"].get("classes") or []
    events = Located(report)["events"]
    weighted = "weight" in report["provenance"]["data"].get("design", ())
    return [
        _figure(k, event["confusion"], events[k]["confusion"]["pairs"], names, weighted=weighted)
        for k, event in report["events"].items()
        if event.get("confusion")
    ]


def _figure(k: str, found: Row, pairs: Located, names: list[str], *, weighted: bool) -> Figure:
    shown = _unique([text.name(names[index]) for index in found["classes"]])
    shown += [OTHERS] * (len(found["counts"]) - len(shown))
    return Figure(
        chart=CONFUSION,
        key=k,
        title=_title(k, found, names),
        note=f"Confusion matrix of {_answers(found)} on the calibration set: "
        f"{text.count(found['n_accepted'])}, of which {text.count(found['n_errors'])} are wrong. "
        "Correct answers are on the grey diagonal."
        + (" Classes with the most errors." if OTHERS in shown else "")
        + (" Samples are counted, without their weights." if weighted else ""),
        data={"rows": list(_cells(found["counts"], shown))},
        table=Table.of(
            COLUMNS,
            [
                ({name: text.name(names[row[name]]) for name in ("label", "predicted")}, at)
                for row, at in zip(found["pairs"], pairs, strict=True)
            ],
        ),
    )


def _answers(found: Row) -> str:
    """Return which answers are counted."""
    if found["threshold"] is None:
        return "all answers"
    if found.get("operating_point") is not None:
        return (
            f"the answers that the operating point “{text.name(found['operating_point'])}” accepts"
        )
    if found.get("max_risk") is None:
        return "all accepted answers"
    return f"the answers accepted for an error rate of at most {share(found['max_risk'])}"


def _cells(counts: list[list[int]], shown: list[str]) -> list[Row]:
    """Return the cells that are not empty, and the whole diagonal, which fixes the axes."""
    return [
        {
            "_label": shown[label],
            "_predicted": shown[predicted],
            "place_x": predicted,
            "place_y": label,
            "_kind": CORRECT if label == predicted else WRONG,
            "count": count,
        }
        for label, row in enumerate(counts)
        for predicted, count in enumerate(row)
        if count or label == predicted
    ]


def _unique(names: list[str]) -> list[str]:
    """Return names that differ, as the axes need them."""
    return [f"{name} ({at})" if names.count(name) > 1 else name for at, name in enumerate(names)]


def _title(k: str, found: Row, names: list[str]) -> str:
    if not found["pairs"]:
        accepted = "answer" if found["threshold"] is None else "accepted answer"
        return f"{text.event(k)}: no {accepted} of the calibration set is wrong"
    first = found["pairs"][0]
    label, predicted = (text.name(names[first[name]]) for name in ("label", "predicted"))
    said = f"{text.event(k)}: “{label}” is taken for “{predicted}”"
    if first["count"] == 1:
        return f"{said} once; no error is more frequent"
    shared = [pair["count"] for pair in found["pairs"]].count(first["count"]) > 1
    rank = "no error is more frequent" if shared else "the most frequent error"
    return f"{said} {text.count(first['count'])} times, {rank}"

"""The chart of the classes that errors among accepted answers concern most."""

from collections.abc import Iterable, Sequence
from typing import Any

from howsure.figures.figure import Column, Figure, Table
from howsure.numbers import share
from howsure.pictures.charts import class_errors
from howsure.pictures.charts.class_errors import ErrorShare
from howsure.pictures.picture import WIDE, WIDTH
from howsure.report.event import Confusion, Event
from howsure.report.located import Located
from howsure.report.report import Report
from howsure.report.words import text
from howsure.shares import percent_with_interval
from howsure.statistics.errors_by_class import ClassErrors, ClassShare

CLASS_ERRORS = "class_errors"
KINDS = {
    "labelled": "accepted samples of “{}” are missed",
    "named": "accepted answers “{}” are wrong",
}
COLUMNS = (
    Column("class", str),
    Column("of", str),
    Column("errors", text.count),
    Column("accepted", text.count),
    Column("share", text.percent),
    Column("from", text.percent),
    Column("to", text.percent),
)


def class_error_figures(report: Report) -> list[Figure]:
    """Return the figure of Top-1; none if its records were not read, or no answer is accepted."""
    events = Located(report)["events"]
    names = report.provenance.config["classes"] or []
    return [
        _figure(k, event, event.confusion, events[k]["confusion"]["by_class"], names)
        for k, event in report.events.items()
        if event.confusion is not None and event.confusion.by_class
    ]


def _figure(
    k: str, event: Event, confusion: Confusion, located: Iterable[Any], classes: Sequence[str]
) -> Figure:
    names = [text.name(classes[one.index]) for one in confusion.by_class]
    rows = [
        (name, _drawn(one.labelled), _drawn(one.named))
        for name, one in zip(names, confusion.by_class, strict=True)
    ]
    n_classes, level = len(classes), text.requested(event.figures.level)
    drawn = f"All {n_classes} classes"
    if n_classes > len(rows):
        drawn = f"The {len(rows)} of {n_classes} classes with the most errors"
    promise = confusion.max_risk
    together = above = ""
    if promise is not None:
        together = f"At most {share(promise)} is promised for all accepted answers together. "
        above = "; orange where all of one is above the promise"
    return Figure(
        chart=CLASS_ERRORS,
        key=k,
        title=_title(k, names, confusion),
        note=f"{together}{drawn}, on the calibration set, with {level} intervals of each class by "
        f"itself{above}.",
        picture=class_errors.class_errors(rows, promise, WIDTH),
        wide=class_errors.class_errors(rows, promise, WIDE),
        table=Table(
            COLUMNS,
            [
                [name, kind, *_cells(at[kind])]
                for name, one, at in zip(names, confusion.by_class, located, strict=True)
                for kind, _ in _shares(one)
            ],
        ),
    )


def _cells(at: Located) -> list[Located]:
    return [at["n_errors"], at["n_samples"], at["share"], at["interval"][0], at["interval"][1]]


def _drawn(errors: ClassShare) -> ErrorShare | None:
    if errors.share is None or errors.interval is None:
        return None
    return ErrorShare(errors.share, *errors.interval)


def _title(k: str, names: list[str], confusion: Confusion) -> str:
    """Return the worst class, or that the promise is within the interval of each."""
    kind, errors = max(_shares(confusion.by_class[0]), key=lambda one: one[1].lower)
    if confusion.max_risk is not None and errors.lower <= confusion.max_risk:
        return f"{text.event(k)}: no class is clearly above the promise"
    rate = percent_with_interval(errors.share, (errors.lower, errors.upper))
    return f"{text.event(k)}: {rate} of {KINDS[kind].format(names[0])}"


def _shares(errors: ClassErrors) -> list[tuple[str, ErrorShare]]:
    drawn = ((kind, _drawn(getattr(errors, kind))) for kind in KINDS)
    return [(kind, one) for kind, one in drawn if one is not None]

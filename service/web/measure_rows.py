"""The rows of tables of scores: measures, baselines and the oracle, and where their numbers are."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from service.operations.report_comparison import is_pooled
from service.web.differences import verdict_of
from service.web.measure_words import needs_of
from service.web.score_words import SCORES

Place = tuple[object, ...]


@dataclass(frozen=True)
class Cell:
    """A score: where its value is, where its spread if it is a mean over folds, and what of."""

    form: str
    value: Place
    std: Place | None = None
    note: str | None = None


@dataclass(frozen=True)
class Row:
    """What is scored.

    Attributes
    ----------
    name, needs : str
    serves : bool
    cost : tuple or None
        Where the runs and the milliseconds of a measure are.
    difference : tuple or None
        Where that of its `nll` from what serves is.
    verdict : str or None
        What the difference says.
    cells : list of Cell
        One for each of `SCORES`.
    """

    name: str
    needs: str = ""
    serves: bool = False
    cost: Place | None = None
    difference: Place | None = None
    verdict: str | None = None
    cells: list[Cell] = field(default_factory=list)


@dataclass(frozen=True)
class Group:
    """Rows of a kind, below a heading of their own."""

    title: str
    rows: Sequence[Row]


def cross_validated(k: str, event: Mapping[str, Any], folds: int) -> list[Group]:
    """Return the rows of the scores over folds."""
    at: Place = ("events", k)

    def cells(place: Place, found: Mapping[str, Any]) -> list[Cell]:
        return [_over_folds(place, found, score.name, score.form, folds) for score in SCORES]

    measures = [
        _measure(at, index, event, cells(*_found(at, event, "measures", row["measure"])))
        for index, row in enumerate(event["comparison"])
    ]
    baselines = [
        _baseline(at, name, event, "cross_validation", cells((*at, "baselines", name), found))
        for name, found in event["baselines"].items()
    ]
    oracle = event["oracle"]
    known = [] if oracle is None else [Row("loss", cells=cells((*at, "oracle"), oracle))]
    return _groups(measures, baselines, known)


def on_the_evaluation_set(k: str, event: Mapping[str, Any]) -> list[Group]:
    """Return the rows of the scores on the evaluation set; none without one."""
    at: Place = ("events", k)

    def cells(place: Place) -> list[Cell]:
        return [Cell(score.form, (*place, "evaluation", score.name)) for score in SCORES]

    measures = [
        Row(
            row["measure"],
            serves=row["served"],
            cells=cells((*at, "measures", row["measure"])),
        )
        for row in event["comparison"]
        if event["measures"][row["measure"]]["evaluation"]
    ]
    baselines = [
        _baseline(at, name, event, "evaluation", cells((*at, "baselines", name)))
        for name, found in event["baselines"].items()
        if found["evaluation"]
    ]
    is_known = event["oracle"] is not None and event["oracle"]["evaluation"]
    known = [Row("loss", cells=cells((*at, "oracle")))] if is_known else []
    return _groups(measures, baselines, known)


def _found(at: Place, event: Mapping[str, Any], kind: str, name: str) -> tuple[Place, Any]:
    return (*at, kind, name), event[kind][name]


def _measure(at: Place, index: int, event: Mapping[str, Any], cells: list[Cell]) -> Row:
    row = event["comparison"][index]
    difference = row["difference"]
    return Row(
        row["measure"],
        needs=needs_of(row["measure"]),
        serves=row["served"],
        cost=None if row["passes"] is None else (*at, "comparison", index),
        difference=None if difference is None else (*at, "comparison", index, "difference"),
        verdict=verdict_of(difference),
        cells=cells,
    )


def _baseline(at: Place, name: str, event: Mapping[str, Any], phase: str, cells: list[Cell]) -> Row:
    difference = event["baselines"][name]["difference"][phase].get("nll")
    place = (*at, "baselines", name, "difference", phase, "nll")
    return Row(
        name,
        difference=None if difference is None else place,
        verdict=verdict_of(difference),
        cells=cells,
    )


def _over_folds(place: Place, found: Mapping[str, Any], score: str, form: str, folds: int) -> Cell:
    """Return a score as the report's comparison has it: the mean, or that of all folds together."""
    at = (*place, "scores", score)
    over = found["scores"].get(score)
    if over is None:
        return Cell(form, (*at, "mean"))
    if is_pooled(score, over, folds):
        return Cell(form, (*at, "pooled"), note="all folds")
    std = None if over["std"] is None else (*at, "std")
    return Cell(form, (*at, "mean"), std, "some folds" if 0 < over["folds"] < folds else None)


def _groups(measures: list[Row], baselines: list[Row], known: list[Row]) -> list[Group]:
    groups = (
        Group("Measures, whose bins can serve", measures),
        Group("Baselines: other ways to a probability, to beat; none serves", baselines),
        Group("Oracle: bins of the loss, which knows the label; the best there could be", known),
    )
    return [group for group in groups if group.rows]

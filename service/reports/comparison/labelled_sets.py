"""Labelled sets that calibrations were judged on, and the set that several have in common."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, TypeAlias
from uuid import UUID

from howsure.report.event import Event
from howsure.report.figures import is_pooled
from howsure.report.further_sets import doubted_part_of
from howsure.report.report import Report
from howsure.report.words import text

Kind: TypeAlias = Literal["evaluation", "further", "calibration"]
SCORE_HEADINGS = {
    "ece_15": "Calibration error",
    "aece": "Adaptive calibration error",
    "mce_15": "Maximum calibration error",
    "amce": "Adaptive maximum calibration error",
    "nll": "Negative log-likelihood",
    "brier": "Brier score",
    "auroc": "Detection of errors",
    "aurc": "Risk over all coverages",
    "eor": "Expected odds ratio",
}


@dataclass(frozen=True, kw_only=True)
class JudgedSet:
    """A labelled set, and the served scores of one calibration on it.

    Attributes
    ----------
    kind : str
        ``calibration`` is judged by cross-validation.
    name : str or None
        Of a further set.
    sha256 : str or None
        Of the file; None for imported calibrations.
    n_samples : int or None
    events : dict
        By k: ``accuracy`` and the scores of `SCORE_HEADINGS`, each None if unknown.
    finished_at : str
        When the calibration was judged on it.
    doubt : str or None
        The part of a further set that is probably wrong.
    """

    calibration_id: UUID = field(repr=False)
    kind: Kind
    name: str | None = None
    sha256: str | None
    n_samples: int | None
    events: Mapping[str, Mapping[str, float | None]] = field(hash=False, compare=False)
    finished_at: str
    doubt: str | None = None

    def to_plain(self) -> dict[str, Any]:
        """Return the set and the scores as plain data."""
        names = ("kind", "name", "sha256", "n_samples", "events")
        return {name: value for name, value in asdict(self).items() if name in names}


Pair: TypeAlias = tuple[JudgedSet, JudgedSet]


def labelled_sets(report: Report) -> list[JudgedSet]:
    """Return the evaluation set, then the labelled further sets, oldest first, each file once."""
    sets = [own_set(report, "evaluation")] if has_evaluation(report) else []
    sets += [
        JudgedSet(
            calibration_id=UUID(report.calibration.id),
            kind="further",
            name=one.name,
            sha256=one.sha256,
            n_samples=one.samples,
            events={
                k: {"accuracy": event.accuracy} | _compared(event.scores or {})
                for k, event in one.events.items()
            },
            finished_at=one.finished_at or "",
            doubt=doubted_part_of(one),
        )
        for one in report.evaluations
        if one.labelled
    ]
    first: dict[str | None, JudgedSet] = {}
    for one in sets:
        first.setdefault(one.sha256, one)
    return list(first.values())


def has_evaluation(report: Report) -> bool:
    """Tell whether the scores of a report are of an evaluation set."""
    return report.provenance.data.get("evaluation_samples") is not None


def own_set(report: Report, kind: Kind | None = None) -> JudgedSet:
    """Return the evaluation set or the calibration set, whose scores are cross-validated.

    By default it is the one that the scores of the report are of.
    """
    kind = kind or ("evaluation" if has_evaluation(report) else "calibration")
    about, data = report.calibration, report.provenance.data
    prefix = "evaluation_" if kind == "evaluation" else ""
    return JudgedSet(
        calibration_id=UUID(about.id),
        kind=kind,
        sha256=data.get(f"{prefix}sha256"),
        n_samples=data.get(f"{prefix}samples"),
        events={
            k: _scores(event, kind, report.provenance.config.get("folds", 0))
            for k, event in report.events.items()
        },
        finished_at=about.finished_at or "",
    )


def _scores(event: Event, kind: Kind, folds: int) -> dict[str, float | None]:
    served = event.measures[event.served]
    if kind == "evaluation":
        accuracy = event.figures.accuracy
        value = None if accuracy is None else accuracy.value
        return {"accuracy": value} | _compared(served.evaluation or {})
    over_folds = {
        name: score.pooled if is_pooled(name, score, folds) else score.mean
        for name, score in served.scores.items()
    }
    return {"accuracy": event.accuracy} | _compared(over_folds)


def _compared(scores: Mapping[str, float | None]) -> dict[str, float | None]:
    return {name: scores.get(name) for name in SCORE_HEADINGS}


def common_sets(
    first: Sequence[JudgedSet],
    others: Sequence[Sequence[JudgedSet]],
    are_same: Callable[[JudgedSet, JudgedSet], bool],
) -> list[Pair | None]:
    """Return the newest set that the first calibration has in common with each other one.

    It is one set for all others if there is one. A set is as old as the first evaluation on it.
    Sets that look wrong for every calibration are the last choice.

    Parameters
    ----------
    first, others
        The labelled sets of each calibration.
    are_same
        Tells whether two sets have the same samples in the same order; it is asked only where
        their descriptions allow it.
    """
    together = next(_common_sets(first, others, are_same), None)
    if together is not None:
        return list(together)
    return [next(iter(pairs_of_sets(first, other, are_same)), None) for other in others]


def pairs_of_sets(
    first: Sequence[JudgedSet],
    other: Sequence[JudgedSet],
    are_same: Callable[[JudgedSet, JudgedSet], bool],
) -> Iterator[Pair]:
    """Yield all sets that two calibrations have in common, in the order of `common_sets`."""
    yield from (pair for (pair,) in _common_sets(first, [other], are_same))


def _common_sets(
    first: Sequence[JudgedSet],
    others: Sequence[Sequence[JudgedSet]],
    are_same: Callable[[JudgedSet, JudgedSet], bool],
) -> Iterator[list[Pair]]:
    everywhere = [one for sets in (first, *others) for one in sets]

    def rank(one: JudgedSet) -> tuple[bool, str]:
        same = [found for found in everywhere if found.sha256 == one.sha256]
        return (
            any(found.doubt is None for found in same),
            min(found.finished_at for found in same),
        )

    for one in sorted(first, key=rank, reverse=True):
        found = [
            next((other for other in _candidates(one, sets) if are_same(one, other)), None)
            for sets in others
        ]
        pairs = [(one, other) for other in found if other is not None]
        if len(pairs) == len(others):
            yield pairs


def _candidates(one: JudgedSet, sets: Sequence[JudgedSet]) -> Iterator[JudgedSet]:
    """Yield the sets that may have the same samples, equal files first.

    Other files may if they have one name, or both are evaluation sets: a set under another name may
    be an altered copy, whose labels are in the same order, too.
    """
    yield from (other for other in sets if other.sha256 == one.sha256)
    for other in sets:
        if other.sha256 != one.sha256 and other.name == one.name:
            yield other


def common_name(pair: Pair, names: Sequence[str]) -> str:
    """Return what to call a set that two calibrations, of these names, have in common."""
    one, other = pair
    is_one_file = one.sha256 == other.sha256
    if one.kind == other.kind == "evaluation":
        return (
            "the same evaluation set"
            if is_one_file
            else "evaluation sets with the same labels in the same order"
        )
    called = next(found.name for found in pair if found.name is not None)
    aside = [
        f"{name}: {'its evaluation set' if found.name is None else quoted(found.name)}"
        for found, name in zip(pair, names, strict=True)
        if found.name != called
    ]
    aside += [] if is_one_file else ["two files with the same labels in the same order"]
    return f"the further set {quoted(called)}" + (f" ({'; '.join(aside)})" if aside else "")


def quoted(name: str) -> str:
    """Return the name of a set in quotation marks."""
    return f"“{text.name(name)}”"

"""What a calibration keeps of its promise as data drift: its stress sets, by kind and intensity."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import quantiles
from typing import NamedTuple

from howsure.report.further_set import AcceptedRate, FurtherSet
from howsure.report.further_sets import is_broken
from howsure.report.parts import FIRST
from howsure.report.report import Report
from howsure.statistics.shift.methods import Better

UNNAMED = "changed"  # sets without a type
LEVEL = 0.05  # of finding any broken promise where all are kept


@dataclass(frozen=True)
class StressSet:
    """A labelled stress set, and its place among those of the report."""

    at: int
    further: FurtherSet

    @property
    def kind(self) -> str:
        """How its samples were changed."""
        return self.further.type or UNNAMED

    @property
    def is_unchanged(self) -> bool:
        """Whether its samples were not changed, so that it belongs to every kind."""
        return self.further.intensity == 0.0


@dataclass(frozen=True)
class Step:
    """What the first tested threshold accepts of the stress set ``at`` its place in the report."""

    at: int
    intensity: float
    accepted: AcceptedRate
    is_broken: bool


@dataclass(frozen=True)
class Stress:
    """The labelled stress sets of a report, by one event.

    Attributes
    ----------
    k : str
    sets : sequence of StressSet
        By ascending intensity, those without one first.
    steps : dict of str to list of Step
        By kind of change, ascending; without a tested threshold none.
    max_risk : float or None
        The promised error rate.
    better : Counter of Better
        Sets by which method is best on them.
    """

    k: str
    sets: Sequence[StressSet]
    steps: dict[str, list[Step]]
    max_risk: float | None
    better: Counter[Better]

    @classmethod
    def of(cls, report: Report) -> "Stress":
        """Return that of a report, by Top-1 or else its first event."""
        k = FIRST if FIRST in report.events else next(iter(report.events))
        sets = [
            StressSet(at, one)
            for at, one in enumerate(report.evaluations)
            if one.role == "stress" and one.labelled and k in one.events
        ]
        sets.sort(key=lambda one: -1.0 if (size := one.further.intensity) is None else size)
        best = [one.further.events[k].best for one in sets]
        rates = [one.further.events[k].accepted for one in sets]
        return cls(
            k=k,
            sets=sets,
            steps=_steps(sets, k),
            max_risk=next((one[0].target["max_risk"] for one in rates if one), None),
            better=Counter(one.better for one in best if one is not None),
        )

    @property
    def intensities(self) -> list[float]:
        """The intensities of all sets, ascending."""
        return sorted({size for one in self.sets if (size := one.further.intensity) is not None})


QUARTILES = ("score", "method", "intensity", "sets", "least", "lower", "median", "upper", "most")


def quartile_rows(stress: Stress) -> Iterator[tuple[str | float, ...]]:
    """Yield `QUARTILES`: each score of each method over the sets of one intensity.

    As the tables of Ovadia et al. 2019, appendix G.
    """
    values: dict[tuple[str, str, float], list[float]] = {}
    for score, method, size, value in _scored(stress):
        values.setdefault((score, method, size), []).append(value)
    for (score, method, size), cell in sorted(values.items()):
        yield (score, method, size, len(cell), min(cell), *_inner(cell), max(cell))


class Quartiles(NamedTuple):
    """Quartiles of a score of a method over a number of sets."""

    score: str
    method: str
    n_sets: int
    lower: float
    median: float
    upper: float


def quartiles_over_sets(stress: Stress) -> Iterator[Quartiles]:
    """Yield the quartiles of each score of each method over all sets that were changed."""
    values: dict[tuple[str, str], list[float]] = {}
    for score, method, size, value in _scored(stress):
        if size > 0.0:
            values.setdefault((score, method), []).append(value)
    for (score, method), cell in values.items():
        yield Quartiles(score, method, len(cell), *_inner(cell))


def _scored(stress: Stress) -> Iterator[tuple[str, str, float, float]]:
    """Yield each score of each method on each set that has an intensity, and the intensity."""
    for one in stress.sets:
        event, size = one.further.events[stress.k], one.further.intensity
        if size is None:
            continue
        for name, method in event.methods.items():
            for score, value in method.scores.items():
                if value is not None:
                    yield score, name, size, value


def _inner(values: list[float]) -> tuple[float, float, float]:
    """Return the quartiles of at least one value, as `numpy.quantile`."""
    lower, median, upper = (
        quantiles(values, n=4, method="inclusive") if len(values) > 1 else values * 3
    )
    return lower, median, upper


def _steps(sets: Sequence[StressSet], k: str) -> dict[str, list[Step]]:
    """Return what is accepted of each set, by kind; all sets share the level of the test."""
    steps: dict[str, list[Step]] = {}
    level = LEVEL / max(len(sets), 1)
    for kind in dict.fromkeys(one.kind for one in sets if not one.is_unchanged):
        for one in sets:
            intensity, accepted = one.further.intensity, one.further.events[k].accepted
            if intensity is None or not accepted or not (one.is_unchanged or one.kind == kind):
                continue
            step = Step(one.at, intensity, accepted[0], is_broken(accepted[0], level))
            steps.setdefault(kind, []).append(step)
    return steps

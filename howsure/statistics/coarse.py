"""The coarse table: for each target, the largest cell whose hit rate reaches it."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from howsure.statistics.bins.intervals import proportion_interval
from howsure.statistics.ranking import RankedSamples

CHOSEN_AFTER_SEEING = (
    "These edges were chosen on the same labels. The hit rates are optimistic, and the intervals "
    "do not correct for that."
)


@dataclass(frozen=True)
class CoarseCell:
    """One cell of a coarse table, ``lower < U <= upper``.

    Attributes
    ----------
    target : float or None
        Target hit rate of the cell; None for the remaining samples.
    lower, upper : float or None
        None where there is no limit. Both are None if no cell reaches the target.
    count, hits : int
    weight : float
        Share of all samples.
    probability : float or None
        Plain ``hits / count``; None for an empty cell.
    interval : tuple of two floats, or None
        Clopper-Pearson interval for a cell fixed in advance; None for an empty cell.
    """

    target: float | None
    lower: float | None
    upper: float | None
    count: int
    hits: int
    weight: float
    probability: float | None
    interval: tuple[float, float] | None


@dataclass(frozen=True)
class CoarseTable:
    """Cells by descending target, then the remaining samples.

    Attributes
    ----------
    targets : tuple of float
    edges : tuple of float or None
        Upper end of the cell of each target; None if the target cannot be met.
    cells : tuple of CoarseCell
        One per target, and one for the remaining samples.
    level : float
        Of the intervals.
    note : str
        A caveat about the intervals.
    """

    targets: tuple[float, ...]
    edges: tuple[float | None, ...]
    cells: tuple[CoarseCell, ...]
    level: float
    note: str = CHOSEN_AFTER_SEEING


def fit_coarse_table(
    ranked: RankedSamples,
    *,
    targets: Sequence[float] = (0.99, 0.95),
    level: float = 0.95,
) -> CoarseTable:
    """Fit a coarse table: Finlay & Oberman, Tables 3 to 5.

    The first edge is the largest ``a`` with ``P(X = 1 | U <= a) >= targets[0]``, the next the
    largest ``b`` with ``P(X = 1 | a < U <= b) >= targets[1]``, and so on, on the plain hit rates
    of the samples. Cells are closed on the right and hold whole blocks of equal values. An edge
    lies half-way to the next value. A target that cannot be met has no edge and an empty cell; the
    next cell then starts at the end of the previous one.

    Parameters
    ----------
    ranked : RankedSamples
    targets : sequence of float
        Descending, in (0, 1).
    level : float
        Of the interval of each cell, in (0, 1).
    """
    ends, start = [], -1
    for target in targets:
        end = _largest(ranked, start, target)
        ends.append(end)
        start = start if end is None else end
    return CoarseTable(
        targets=tuple(targets),
        edges=tuple(_threshold(ranked, end) for end in ends),
        cells=_cells(ranked, targets, ends, level),
        level=level,
    )


def _largest(ranked: RankedSamples, start: int, target: float) -> int | None:
    """Return the last threshold whose samples beyond ``start`` reach the target."""
    count, errors = _beyond(ranked, start)
    # A rate equal to the target meets it: 99 of 100 reaches 0.99 in spite of float64 rounding.
    enough = np.flatnonzero((count - errors) >= target * count * (1.0 - 1e-12))
    return None if enough.size == 0 else start + 1 + int(enough[-1])


def _beyond(ranked: RankedSamples, start: int) -> tuple[np.ndarray, np.ndarray]:
    before = (0, 0) if start < 0 else (ranked.accepted[start], ranked.errors[start])
    return ranked.accepted[start + 1 :] - before[0], ranked.errors[start + 1 :] - before[1]


def _threshold(ranked: RankedSamples, end: int | None) -> float | None:
    return None if end is None or end < 0 else float(ranked.thresholds[end])


def _cells(
    ranked: RankedSamples, targets: Sequence[float], ends: Sequence[int | None], level: float
) -> tuple[CoarseCell, ...]:
    cells, start = [], -1
    for target, end in zip((*targets, None), (*ends, len(ranked.accepted) - 1), strict=True):
        count, errors = 0, 0
        if end is not None and end > start:
            counts, all_errors = _beyond(ranked, start)
            count, errors = int(counts[end - start - 1]), int(all_errors[end - start - 1])
        is_missing = target is not None and end is None
        cells.append(
            CoarseCell(
                target=target,
                lower=None if is_missing else _threshold(ranked, start),
                upper=None if target is None else _threshold(ranked, end),
                count=count,
                hits=count - errors,
                weight=count / ranked.n_samples,
                probability=None if count == 0 else (count - errors) / count,
                interval=None if count == 0 else proportion_interval(count - errors, count, level),
            )
        )
        start = start if end is None else end
    return tuple(cells)

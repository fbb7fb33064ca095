"""The coarse table: for each target, the largest cell whose hit rate reaches it."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from howsure.statistics.bins.intervals import proportion_interval
from howsure.statistics.effective import effective_share
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
        Samples, and hits among them.
    weight : float
        Weighted share of all samples.
    probability : float or None
        Weighted share of hits, not shrunk; None if the cell is empty.
    interval : tuple of two floats, or None
        Clopper-Pearson interval for a cell fixed in advance; None if the cell is empty. With
        weights or groups it is the interval of the effective samples.
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
        The hit rates that were asked for.
    edges : tuple of float or None
        Upper end of the cell of each target; None if the target cannot be met.
    cells : tuple of CoarseCell
        One per target, and one for the remaining samples.
    level : float
        The level of the intervals, such as 0.95.
    note : str
        A caveat about the intervals.
    """

    targets: tuple[float, ...]
    edges: tuple[float | None, ...]
    cells: tuple[CoarseCell, ...]
    level: float
    note: str = CHOSEN_AFTER_SEEING


def fit_coarse_table(
    ranked: RankedSamples, *, targets: Sequence[float] = (0.99, 0.95), level: float = 0.95
) -> CoarseTable:
    """Fit a coarse table: Finlay & Oberman, Tables 3 to 5.

    The first edge is the largest ``a`` with ``P(X = 1 | U <= a) >= targets[0]``, the next the
    largest ``b`` with ``P(X = 1 | a < U <= b) >= targets[1]``, and so on, on the plain hit rates
    of the samples, weighted. Cells are closed on the right and hold whole blocks of equal values.
    An edge lies half-way to the next value. A target that cannot be met has no edge and an empty
    cell; the next cell then starts at the end of the previous one.

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
    hits, errors = (np.cumsum(weights[start + 1 :]) for weights in ranked.block_weights)
    # A rate equal to the target meets it: 99 of 100 reaches 0.99 in spite of float64 rounding.
    enough = np.flatnonzero(hits >= target * (hits + errors) * (1.0 - 1e-12))
    return None if enough.size == 0 else start + 1 + int(enough[-1])


def _threshold(ranked: RankedSamples, end: int | None) -> float | None:
    return None if end is None or end < 0 else float(ranked.thresholds[end])


def _cells(
    ranked: RankedSamples, targets: Sequence[float], ends: Sequence[int | None], level: float
) -> tuple[CoarseCell, ...]:
    cells, start = [], -1
    coverage, design = np.append(0.0, ranked.coverage), ranked.design
    for target, end in zip((*targets, None), (*ends, len(ranked.accepted) - 1), strict=True):
        last = start if end is None else end
        rows = slice(int(ranked.ends[start]) if start >= 0 else 0, int(ranked.ends[last]))
        hits = ranked.hits[rows] if last > start else ranked.hits[:0]
        found = effective_share(hits, design.take(rows))
        count, n_hits = hits.size, int(np.count_nonzero(hits))
        plain = n_hits / count if count else None
        is_missing = target is not None and end is None
        cells.append(
            CoarseCell(
                target=target,
                lower=None if is_missing else _threshold(ranked, start),
                upper=None if target is None else _threshold(ranked, end),
                count=count,
                hits=n_hits,
                weight=float(coverage[last + 1] - coverage[start + 1]),
                probability=plain if found is None else found.share,
                interval=proportion_interval(n_hits, count, level, found) if count else None,
            )
        )
        start = last
    return tuple(cells)

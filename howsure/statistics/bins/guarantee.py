"""Guarantees for all bins at once."""

from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from howsure.statistics.bins.table import BinTable

LEAST_PER_BIN = 2
Obstacle: TypeAlias = Literal[
    "learned", "design", "ties", "pooled", "fewer_bins", "small_bins", "vacuous"
]


@dataclass(frozen=True)
class Guarantee:
    """A bound on the distance between true probabilities and the hit rates of a table.

    Attributes
    ----------
    width : float or None
        With probability ``1 - alpha``, all ``|p_i - hits_i / counts_i|`` are at most this; None
        if a condition fails.
    alpha : float
    n_compared : int
        Number of bins covered: those of the table if the number of bins and the measure were fixed
        in advance, otherwise those of all candidates.
    per_bin : int
        Samples to a bin.
    reasons : tuple of Obstacle
        Failed conditions; empty if ``width`` is given.
    """

    width: float | None
    alpha: float
    n_compared: int
    per_bin: int
    reasons: tuple[Obstacle, ...]


def guarantee(
    table: BinTable,
    *,
    fixed: bool,
    n_candidate_bins: int,
    alpha: float = 0.05,
    ties: bool,
    learned: bool = False,
) -> Guarantee:
    """Return the distribution-free guarantee of uniform-mass bins: Gupta & Ramdas 2021, Theorem 3.

    ``sqrt(log(2 C / alpha) / (2 (floor(n / B) - 1)))``, without sample splitting: edges and hit
    rates come from the same data.

    Parameters
    ----------
    table : BinTable
        Unpooled: the bins as they are stored, whatever the lookup.
    fixed : bool
        Whether the caller fixed the number of bins and the measure. ``C`` is then ``B``.
    n_candidate_bins : int
        ``C`` if they were chosen: the bins of all candidate tables, over numbers of bins and
        measures.
    alpha : float
        In (0, 1).
    ties : bool
        Whether an edge would cut a block of equal uncertainties (`edges_cut_ties`).
    learned : bool
        Whether the measure was fitted to the hits of the same samples. The theorem is about a
        measure that does not depend on them.
    """
    n_compared = table.n_bins if fixed else n_candidate_bins
    per_bin = table.n_samples // table.n_bins
    reasons = _failed_conditions(table, per_bin, ties=ties, learned=learned)
    width = None
    if not reasons:
        width = float(np.sqrt(np.log(2.0 * n_compared / alpha) / (2.0 * (per_bin - 1))))
        if width >= 1.0:
            reasons, width = ("vacuous",), None
    return Guarantee(width, alpha, n_compared, per_bin, reasons)


def _failed_conditions(
    table: BinTable, per_bin: int, *, ties: bool, learned: bool
) -> tuple[Obstacle, ...]:
    fewer = table.n_bins < table.requested_bins and not table.monotone and not ties
    failed: dict[Obstacle, bool] = {
        "learned": learned,
        "design": table.effective is not None,
        "ties": ties,
        "pooled": table.monotone,
        "fewer_bins": fewer,
        "small_bins": per_bin < LEAST_PER_BIN,
    }
    return tuple(obstacle for obstacle, fails in failed.items() if fails)

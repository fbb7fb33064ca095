"""Guarantees for all bins at once."""

from dataclasses import dataclass

import numpy as np

from howsure.statistics.bins.table import BinTable

LEAST_PER_BIN = 2


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
    reasons : tuple of str
        Failed conditions; empty if ``width`` is given.
    sentence : str
        The result in words.
    """

    width: float | None
    alpha: float
    n_compared: int
    reasons: tuple[str, ...]
    sentence: str


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
            reasons, width = (f"{per_bin} samples to a bin promise nothing",), None
    return Guarantee(
        width=width,
        alpha=alpha,
        n_compared=n_compared,
        reasons=reasons,
        sentence=_sentence(width, alpha, n_compared, reasons),
    )


def _failed_conditions(
    table: BinTable, per_bin: int, *, ties: bool, learned: bool
) -> tuple[str, ...]:
    reasons = []
    if learned:
        reasons.append("the measure was learned from the labels of the same samples")
    if table.effective is not None:
        reasons.append("samples have weights or groups")
    if ties:
        reasons.append("an edge between bins falls among samples of equal uncertainty")
    if table.monotone:
        reasons.append("bins were pooled after seeing their hits")
    if table.n_bins < table.requested_bins and not table.monotone and not ties:
        reasons.append("fewer bins were created than requested")
    if per_bin < LEAST_PER_BIN:
        reasons.append(f"bins hold {per_bin} sample{'s' * (per_bin != 1)}: two are needed")
    return tuple(reasons)


def _sentence(width: float | None, alpha: float, n_compared: int, reasons: tuple[str, ...]) -> str:
    if width is None:
        return f"No guarantee for all bins at once: {'; '.join(reasons)}."
    return (
        f"Step table: with probability {1.0 - alpha:g} over calibration sets, and for data drawn "
        f"like it, the true hit rate of every bin lies within ±{width:.4g} of the observed one "
        f"({n_compared} bins compared)."
    )

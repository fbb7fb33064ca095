"""Outcomes of samples: uncertainty against loss for a few of each, and errors by bin."""

from dataclasses import dataclass

import numpy as np

from howsure.statistics.arrays import Counts
from howsure.statistics.bins.table import BinTable
from howsure.statistics.records.records import Records

MOST_OF_AN_OUTCOME = 200
FIGURES = 5  # significant digits: more than a picture can show
USUAL_TOP = 5


@dataclass(frozen=True)
class Outcome:
    """The samples of one outcome, some of them as points.

    Attributes
    ----------
    count : int
        Number of all samples.
    uncertainty, loss : tuple of float
        Of at most 200 samples chosen by tie key, to five significant digits.
    infinite : int
        Chosen samples without a point, because their label has probability 0.
    """

    count: int
    uncertainty: tuple[float, ...]
    loss: tuple[float, ...]
    infinite: int


@dataclass(frozen=True)
class LossScatter:
    """Uncertainty against ``-log p_y``: Finlay & Oberman, Figures 1 and 4.

    Attributes
    ----------
    hit : Outcome
        The label is the top class.
    top5_hit : Outcome
        The label is among the five top classes, but not the first.
    miss : Outcome
        The label is not among the five top classes.
    """

    hit: Outcome
    top5_hit: Outcome
    miss: Outcome


def loss_scatter(records: Records, column: str) -> LossScatter:
    """Choose samples of each outcome by tie key.

    Parameters
    ----------
    records : Records
    column : str
        Of the uncertainty.
    """
    rank = records.label_rank
    return LossScatter(
        hit=_outcome(records, column, np.flatnonzero(rank == 0)),
        top5_hit=_outcome(records, column, np.flatnonzero((rank > 0) & (rank < USUAL_TOP))),
        miss=_outcome(records, column, np.flatnonzero(rank >= USUAL_TOP)),
    )


def _outcome(records: Records, column: str, rows: np.ndarray) -> Outcome:
    order = np.argsort(records.tie_key[rows], kind="stable")
    drawn = rows[order[:MOST_OF_AN_OUTCOME]]
    loss = -records.label_log_probability[drawn]
    finite = np.isfinite(loss)
    return Outcome(
        count=len(rows),
        uncertainty=_shortened(records.uncertainty[column][drawn[finite]]),
        loss=_shortened(loss[finite]),
        infinite=int(np.count_nonzero(~finite)),
    )


def _shortened(values: np.ndarray) -> tuple[float, ...]:
    return tuple(float(f"{value:.{FIGURES}g}") for value in values.tolist())


def top5_hits(records: Records, k: int, table: BinTable, column: str) -> Counts:
    """Return the errors of each bin whose label is among the five top classes.

    Finlay & Oberman, Figure 1, draw them between the hits and the other errors.

    Parameters
    ----------
    records : Records
    k : int
        The event: the label is among the ``k`` top classes.
    table : BinTable
        Of the uncertainty.
    column : str
        Of the uncertainty.

    Returns
    -------
    ndarray of int64, shape (n_bins,)
    """
    bins = table.look_up(records.uncertainty[column]).bin
    is_near = records.hits(USUAL_TOP) & ~records.hits(k)
    return np.bincount(bins[is_near], minlength=table.n_bins)

"""Errors worth a look: likely wrong labels, the most confident errors, and samples to keep."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from howsure.statistics.arrays import Rates, Uncertainty
from howsure.statistics.bins.edges import assign_bins
from howsure.statistics.bins.prior import posterior_mean
from howsure.statistics.bins.table import BinTable
from howsure.statistics.records.records import Records


def most_confident_errors(records: Records, k: int, column: str, *, n: int) -> NDArray[np.int64]:
    """Return the rows of at most ``n`` samples with ``X = 0``, the least uncertain first.

    Of equals, by tie key.

    Parameters
    ----------
    records : Records
    k : int
        The Top-k event.
    column : str
        The column of the records that they are ordered by.
    n : int

    Raises
    ------
    ValueError
        If the records lack the column, or ``n`` is negative.
    """
    missed = error_rows(records, k, column, n=n)
    order = np.lexsort((records.tie_key[missed], records.uncertainty[column][missed]))
    return missed[order[:n]]


def error_rows(records: Records, k: int, column: str, *, n: int) -> NDArray[np.int64]:
    """Return the rows with ``X = 0``, for a list of at most ``n`` by ``column``.

    Raises
    ------
    ValueError
        If the records lack the column, or ``n`` is negative.
    """
    if column not in records.uncertainty:
        raise ValueError(f"records must hold {column}")
    if n < 0:
        raise ValueError(f"n must not be negative, not {n}")
    return np.flatnonzero(~records.hits(k))


@dataclass(frozen=True)
class MislabelledCandidate:
    """A sample without a hit where one was to be expected.

    Attributes
    ----------
    index : int
        Its row in the records.
    label, predicted : int
        The class it was given, and the model's own.
    posterior : float
        Probability of a hit in its bin, from the bin's other samples.
    uncertainty : float
    """

    index: int
    label: int
    predicted: int
    posterior: float
    uncertainty: float


def mislabelled_candidates(
    records: Records,
    k: int,
    column: str,
    table: BinTable,
    *,
    n: int,
    leave_one_out: bool = True,
) -> tuple[MislabelledCandidate, ...]:
    """Return samples with ``X = 0``, those that most surely should be hits first.

    By the posterior of their bin, then by uncertainty, the most certain first; of equals, by tie
    key. Finlay & Oberman, section 7.2; Oberman et al., section 7.2.

    Parameters
    ----------
    records : Records
        In the order whose positions are to be reported.
    k : int
        The Top-k event.
    column : str
        The column of the records that ``table`` was fitted to.
    table : BinTable
    n : int
        At most so many candidates.
    leave_one_out : bool
        Whether the table was fitted on these records, so that each sample is left out of its own
        bin: ``(k_i + m p_A) / (n_i - 1 + m)``.

    Raises
    ------
    ValueError
        If the records lack the column, or ``n`` is negative.
    """
    missed = error_rows(records, k, column, n=n)
    uncertainty = records.uncertainty[column][missed]
    expected = posterior_of_others(uncertainty, table, leave_one_out=leave_one_out)
    order = np.lexsort((records.tie_key[missed], uncertainty, -expected))[:n]
    return tuple(
        MislabelledCandidate(
            index=int(missed[place]),
            label=int(records.label[missed[place]]),
            predicted=int(records.top_classes[missed[place], 0]),
            posterior=float(expected[place]),
            uncertainty=float(uncertainty[place]),
        )
        for place in order
    )


def posterior_of_others(
    uncertainty: Uncertainty, table: BinTable, *, leave_one_out: bool = True
) -> Rates:
    """Return the posterior of the bin of each sample without a hit, from the bin's other samples.

    Parameters
    ----------
    uncertainty : ndarray of float32, shape (n_samples,)
        Of samples with ``X = 0`` alone.
    table : BinTable
    leave_one_out : bool
        Whether the table was fitted on them, so that each is one of its bin's samples.

    Returns
    -------
    ndarray of float64, shape (n_samples,)
    """
    # A miss left out takes a sample from its bin and no hit; maximum() is for a foreign table.
    counts = np.maximum(table.counts - int(leave_one_out), table.hits)
    posterior = posterior_mean(table.hits, counts, table.prior)
    return posterior[assign_bins(uncertainty, table.edges)]


def choose_rows_to_keep(
    records: Records, k: int, column: str, table: BinTable, *, n: int
) -> NDArray[np.int64]:
    """Return the rows of at most ``n`` samples that a person or a test wants to see, ascending.

    A third of them those whose label is most likely wrong (`mislabelled_candidates`), a third the
    most certain errors, and the rest by tie key, which is as good as at random; of fewer
    candidates the rest has more.

    Parameters
    ----------
    records : Records
        The calibration set.
    k : int
        The Top-k event.
    column : str
        The column of the records that ``table`` was fitted to.
    table : BinTable
    n : int

    Raises
    ------
    ValueError
        If the records lack the column, or ``n`` is negative.
    """
    suspects = mislabelled_candidates(records, k, column, table, n=n // 3)
    chosen = np.zeros(records.n_samples, np.bool_)
    chosen[[candidate.index for candidate in suspects]] = True
    chosen[most_confident_errors(records, k, column, n=n // 3)] = True
    others = np.flatnonzero(~chosen)
    room = n - int(np.count_nonzero(chosen))
    chosen[others[np.argsort(records.tie_key[others], kind="stable")[:room]]] = True
    return np.flatnonzero(chosen)

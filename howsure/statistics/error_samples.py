"""Errors worth inspecting: likely wrong labels, the most confident errors, samples to keep."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from howsure.statistics.arrays import NONE_OF_THESE, Rates, Uncertainty
from howsure.statistics.bins.edges import assign_bins
from howsure.statistics.bins.prior import posterior_mean
from howsure.statistics.bins.table import BinTable
from howsure.statistics.records.records import Records


def most_confident_errors(records: Records, k: int, column: str, *, n: int) -> NDArray[np.int64]:
    """Return the rows of at most ``n`` errors, the least uncertain first, then by tie key.

    Parameters
    ----------
    records : Records
    k : int
        The Top-k event.
    column : str
        The column of the records to sort by.
    n : int
    """
    missed = np.flatnonzero(~records.hits(k))
    order = np.lexsort((records.tie_key[missed], records.uncertainty[column][missed]))
    return missed[order[:n]]


@dataclass(frozen=True)
class MislabelledCandidate:
    """An error in a bin whose samples are mostly hits.

    Attributes
    ----------
    index : int
        Its row in the records.
    label, predicted : int
        Its label, and the class that the model predicts.
    posterior : float
        Probability of a hit in its bin, from the other samples of the bin.
    uncertainty : float
        By the served measure.
    """

    index: int
    label: int
    predicted: int
    posterior: float
    uncertainty: float


def mislabelled_candidates(
    records: Records, k: int, column: str, table: BinTable, *, n: int, leave_one_out: bool = True
) -> tuple[MislabelledCandidate, ...]:
    """Return the errors whose label is most likely wrong, the likeliest first.

    Sorted by the posterior of their bin, then by uncertainty (ascending), then by tie key. Finlay &
    Oberman, section 7.2; Oberman et al., section 7.2. Samples of none of the classes are left out.

    Parameters
    ----------
    records : Records
        ``index`` in the result is a position in these records.
    k : int
        The Top-k event.
    column : str
        The column of the records that ``table`` was fitted to.
    table : BinTable
    n : int
        Maximum number of candidates.
    leave_one_out : bool
        Whether the table was fitted on these records. Each sample is then left out of its own
        bin: ``(k_i + m p_A) / (n_i - 1 + m)``.
    """
    missed = np.flatnonzero(~records.hits(k) & (records.label != NONE_OF_THESE))
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
    """Return, for each error, the posterior of its bin from the bin's other samples.

    Parameters
    ----------
    uncertainty : ndarray of float32, shape (n_samples,)
        Of errors only.
    table : BinTable
    leave_one_out : bool
        Whether the table was fitted on these samples.

    Returns
    -------
    ndarray of float64, shape (n_samples,)
    """
    # Leaving out an error removes a sample and no hit; maximum() is for a table of other samples.
    counts = np.maximum(table.counts - int(leave_one_out), table.hits)
    posterior = posterior_mean(table.hits, counts, table.prior)
    return posterior[assign_bins(uncertainty, table.edges)]


def choose_rows_to_keep(
    records: Records, k: int, column: str, table: BinTable, *, n: int
) -> NDArray[np.int64]:
    """Return the rows of at most ``n`` samples worth keeping for inspection, ascending.

    One third are the samples whose label is most likely wrong (`mislabelled_candidates`), one third
    the most confident errors. The rest, more if there are fewer of these, is chosen by tie key,
    which is as good as random.

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
    """
    suspects = mislabelled_candidates(records, k, column, table, n=n // 3)
    chosen = np.zeros(records.n_samples, np.bool_)
    chosen[[candidate.index for candidate in suspects]] = True
    chosen[most_confident_errors(records, k, column, n=n // 3)] = True
    others = np.flatnonzero(~chosen)
    room = n - int(np.count_nonzero(chosen))
    chosen[others[np.argsort(records.tie_key[others], kind="stable")[:room]]] = True
    return np.flatnonzero(chosen)

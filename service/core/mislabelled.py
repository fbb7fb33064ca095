"""Samples whose label is more likely wrong than the model."""

from dataclasses import dataclass

import numpy as np

from service.core.arrays import Rates, Uncertainty
from service.core.bins.assign import assign_bins
from service.core.bins.prior import posterior_mean
from service.core.bins.table import BinTable
from service.core.missed import missed_rows
from service.core.plain_data import PlainData
from service.core.records import Records


@dataclass(frozen=True)
class MislabelledCandidate(PlainData):
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
    missed = missed_rows(records, k, column, n=n)
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

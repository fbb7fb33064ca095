"""Judge the served measure's table on samples that it was not fitted to."""

import numpy as np
from numpy.typing import NDArray

from service.core.arrays import BinIndex
from service.core.bins.fit_table import fit_bin_table
from service.core.bins.table import BinTable
from service.core.fit_options import FitOptions
from service.core.fit_result import MeasureFit
from service.core.judged_table import judge_table
from service.core.records import Records
from service.core.reliability import HeldOut, Reliability, reliability


def fit_reliability(
    records: Records,
    k: int,
    served: MeasureFit,
    *,
    folds: BinIndex,
    options: FitOptions,
    evaluation: Records | None,
) -> Reliability | None:
    """Say how often the served probabilities come true, and the model's own.

    On the evaluation set where there is one; else the table is fitted to half of the folds and
    judged on the other half. None where there is but one fold.
    """
    level = options.interval.level
    if evaluation is not None:
        every = np.ones(evaluation.n_samples, np.bool_)
        return _judge(served.table, evaluation, every, k, served.column, "evaluation", level)
    judging = folds % 2 == 1
    if not judging.any():
        return None
    uncertainty, hits = records.uncertainty[served.column], records.hits(k)
    table = fit_bin_table(
        uncertainty[~judging],
        hits[~judging],
        n_bins=served.table.requested_bins,
        prior_strength=options.prior_strength,
        interval=options.interval,
        lookup=options.lookup,
        monotone=options.monotone,
    )
    return _judge(table, records, judging, k, served.column, "half", level)


def _judge(
    table: BinTable,
    records: Records,
    rows: NDArray[np.bool_],
    k: int,
    column: str,
    held_out: HeldOut,
    level: float,
) -> Reliability:
    return reliability(
        judge_table(table, records.uncertainty[column][rows], records.hits(k)[rows]),
        raw=records.raw_probability(k)[rows],
        predicted=records.top_classes[rows, 0].astype(np.int64),
        held_out=held_out,
        level=level,
    )

"""Bins of the loss itself: what a perfect measure could do."""

from dataclasses import replace

import numpy as np

from service.core.arrays import BinIndex, Uncertainty
from service.core.fit_options import FitOptions
from service.core.fit_result import BaselineFit
from service.core.judged_table import LabelledUncertainty, fit_judged_table
from service.core.records import Records

ORACLE = "loss"


def fit_oracle(
    records: Records,
    k: int,
    n_bins: int,
    *,
    folds: BinIndex,
    options: FitOptions,
    evaluation: Records | None,
) -> BaselineFit:
    """Fit and judge bins of ``-log p_y``: Finlay & Oberman, Table 2.

    It needs the label of the sample, so it can be reported and never served. As the loss is at
    least ``-log p_(1)``, and equal to it where the prediction is right, no measure knows more of
    the Top-1 event.
    """
    judging = None
    if evaluation is not None:
        judging = LabelledUncertainty(loss(evaluation), evaluation.hits(k))
    found = fit_judged_table(
        LabelledUncertainty(loss(records), records.hits(k)),
        folds=folds,
        options=replace(options, bins=n_bins),
        evaluation=judging,
    )
    return BaselineFit(name=ORACLE, log_floor=0.0, scores=found.scores, evaluation=found.evaluation)


def loss(records: Records) -> Uncertainty:
    """Return ``-log p_y`` in float32; an infinite loss is the largest number, so that it ranks."""
    largest = float(np.finfo(np.float32).max)
    return np.minimum(-records.label_log_probability, largest).astype(np.float32)

"""Fit and judge one baseline on the folds of the bin tables."""

import numpy as np

from service.core.arrays import BinIndex
from service.core.calibrators import Calibrator, Predict
from service.core.crossval import FoldScore, fold_scores, pooled_scores, splits
from service.core.fit_result import BaselineFit
from service.core.records import Records
from service.core.scores import Judged, applicable, judge


def fit_baseline(
    records: Records,
    k: int,
    calibrator: Calibrator,
    *,
    folds: BinIndex,
    evaluation: Records | None,
) -> BaselineFit:
    """Fit and judge one calibrator for the Top-k event.

    Logarithms see its probabilities clipped to ``[1 / (2 n), 1 - 1 / (2 n)]``: a softmax of
    exactly 1 on an error would cost an infinity, where a bin table is regularised.
    """
    log_floor = 0.5 / records.n_samples
    judged = None
    if evaluation is not None:
        predict = calibrator.fit(records, k, np.arange(records.n_samples))
        judged = judge(_judge(predict, evaluation, k, log_floor))
    return BaselineFit(
        name=calibrator.name,
        log_floor=log_floor,
        scores=_cross_validate(records, k, calibrator, folds, log_floor),
        evaluation=judged,
    )


def _judge(predict: Predict, records: Records, k: int, log_floor: float) -> Judged:
    said = predict(records)
    return Judged(
        uncertainty=said.uncertainty,
        hits=records.hits(k),
        probability=said.probability,
        log_floor=log_floor,
    )


def _cross_validate(
    records: Records, k: int, calibrator: Calibrator, folds: BinIndex, log_floor: float
) -> dict[str, FoldScore]:
    by_fold = []
    probability, uncertainty = np.empty((2, records.n_samples))
    for fitted, held_out in splits(folds):
        predict = calibrator.fit(records, k, fitted)
        judged = _judge(predict, records.take(held_out), k, log_floor)
        by_fold.append(judge(judged))
        probability[held_out] = judged.probability
        uncertainty[held_out] = judged.uncertainty
    if not by_fold:
        return fold_scores([], dict.fromkeys(applicable(has_bins=False)))
    pooled = Judged(
        uncertainty=uncertainty,
        hits=records.hits(k),
        probability=probability,
        log_floor=log_floor,
    )
    return fold_scores(by_fold, pooled_scores(pooled, learned=calibrator.learns))

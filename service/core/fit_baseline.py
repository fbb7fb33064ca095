"""Fit and judge the baselines of an event on the folds of the bin tables."""

from dataclasses import replace

import numpy as np

from service.core.arrays import BinIndex
from service.core.bins.table import Lookup
from service.core.calibrators import CALIBRATORS, Calibrator, Fitted
from service.core.consistency import confidence_band
from service.core.crossval import FoldScore, fold_scores, pooled_scores, splits
from service.core.fit_measure import labelled
from service.core.fit_options import FitOptions
from service.core.fit_result import BaselineFit, MeasureFit
from service.core.judged_table import fit_judged_table, judge_table
from service.core.paired import PairedDifference, paired_difference
from service.core.records import Records
from service.core.scores import Judged, applicable, judge
from service.core.scores.brier import squared_errors
from service.core.scores.nll import log_losses

COMPARED = ("nll", "brier")


def fit_baselines(
    records: Records,
    k: int,
    served: MeasureFit,
    *,
    folds: BinIndex,
    options: FitOptions,
    evaluation: Records | None,
) -> dict[str, BaselineFit]:
    """Fit and judge every calibrator, and the served bins with the lookup that is not served."""
    baselines = {
        name: fit_baseline(
            records, k, calibrator, served, folds=folds, options=options, evaluation=evaluation
        )
        for name, calibrator in CALIBRATORS.items()
    }
    other = _fit_other_lookup(
        records, k, served, folds=folds, options=options, evaluation=evaluation
    )
    return {**baselines, other.name: other}


def fit_baseline(
    records: Records,
    k: int,
    calibrator: Calibrator,
    served: MeasureFit,
    *,
    folds: BinIndex,
    options: FitOptions,
    evaluation: Records | None,
) -> BaselineFit:
    """Fit and judge one calibrator for the Top-k event.

    Logarithms see its probabilities clipped to ``[1 / (2 n), 1 - 1 / (2 n)]``: a softmax of
    exactly 1 on an error would cost an infinity, where a bin table is regularised.
    """
    log_floor = 0.5 / records.n_samples
    fitted = calibrator.fit(records, k, np.arange(records.n_samples))
    scores = _cross_validate(records, k, calibrator, folds, log_floor)
    band = None
    if not calibrator.learns:
        pooled = scores["ece_15"].pooled
        band = confidence_band(fitted(records).probability, pooled, seed=options.seed)
    found = BaselineFit(
        name=calibrator.name,
        log_floor=log_floor,
        scores=scores,
        evaluation=None,
        parameters=fitted.parameters,
        difference=fold_differences(scores, served.scores),
        ece_band=band,
    )
    if evaluation is None:
        return found
    judged = _judge(fitted, evaluation, k, log_floor)
    evaluated = judge(judged)
    return replace(
        found,
        evaluation=evaluated,
        evaluation_difference=_sample_differences(judged, _judge_served(served, evaluation, k)),
        evaluation_ece_band=confidence_band(
            judged.probability, evaluated["ece_15"], seed=options.seed
        ),
    )


def _fit_other_lookup(
    records: Records,
    k: int,
    served: MeasureFit,
    *,
    folds: BinIndex,
    options: FitOptions,
    evaluation: Records | None,
) -> BaselineFit:
    """Fit the served measure's bins with the lookup that is not served."""
    lookup: Lookup = "step" if options.lookup == "interpolated" else "interpolated"
    changed = replace(options, lookup=lookup, bins=served.table.requested_bins)
    judging = None if evaluation is None else labelled(evaluation, served.column, k)
    samples = labelled(records, served.column, k)
    found = fit_judged_table(samples, folds=folds, options=changed, evaluation=judging)
    differences = {}
    if judging is not None and evaluation is not None:
        judged = judge_table(found.table, judging.uncertainty, judging.hits)
        differences = _sample_differences(judged, _judge_served(served, evaluation, k))
    return BaselineFit(
        name=f"{lookup}_bins",
        log_floor=0.0,
        scores=found.scores,
        evaluation=found.evaluation,
        parameters={"bins": float(found.table.n_bins)},
        difference=fold_differences(found.scores, served.scores),
        evaluation_difference=differences,
    )


def fold_differences(
    one: dict[str, FoldScore], other: dict[str, FoldScore]
) -> dict[str, PairedDifference]:
    """Return ``nll`` and ``brier`` of the one minus those of the other, fold by fold."""
    found = {name: paired_difference(one[name].by_fold, other[name].by_fold) for name in COMPARED}
    return {name: difference for name, difference in found.items() if difference is not None}


def _sample_differences(one: Judged, other: Judged) -> dict[str, PairedDifference]:
    with np.errstate(invalid="ignore"):  # both infinite: no number, and left out below
        nll = paired_difference(log_losses(one), log_losses(other))
    found = {"nll": nll, "brier": paired_difference(squared_errors(one), squared_errors(other))}
    return {
        name: difference
        for name, difference in found.items()
        if difference is not None and np.isfinite(difference.mean)
    }


def _judge_served(served: MeasureFit, records: Records, k: int) -> Judged:
    return judge_table(served.table, records.uncertainty[served.column], records.hits(k))


def _judge(fitted: Fitted, records: Records, k: int, log_floor: float) -> Judged:
    said = fitted(records)
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
    for rows, held_out in splits(folds):
        fitted = calibrator.fit(records, k, rows)
        judged = _judge(fitted, records.take(held_out), k, log_floor)
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

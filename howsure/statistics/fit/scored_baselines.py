"""Fit and score the baselines on the folds and the evaluation set of an event."""

from collections.abc import Callable
from dataclasses import replace
from typing import get_args

import numpy as np

from howsure.statistics.arrays import BinIndex, Uncertainty
from howsure.statistics.bins.lookup import Lookup
from howsure.statistics.comparison import (
    PairedDifference,
    finite,
    fold_difference,
    paired_differences,
)
from howsure.statistics.diagnostics.consistency import confidence_band
from howsure.statistics.fit.baselines import BASELINES, BaselineMethod, FittedBaseline
from howsure.statistics.fit.cross_validation import (
    FoldScore,
    by_column,
    cross_validate,
    fit_scored_table,
    predict_with_table,
)
from howsure.statistics.fit.event_samples import ALL, EventInput, EventSamples, Rows
from howsure.statistics.fit.result import BaselineFit, MeasureFit
from howsure.statistics.records.records import Records
from howsure.statistics.scores import Predictions, compute_scores
from howsure.statistics.scores.proper import sample_losses

ORACLE = "loss"
COMPARED = ("nll", "brier")


def fit_baselines(event: EventInput, served: MeasureFit) -> dict[str, BaselineFit]:
    """Fit and score every baseline, and the served bins with the other lookups."""
    baselines = {name: _fit_baseline(event, method, served) for name, method in BASELINES.items()}
    others = [
        _fit_other_lookup(event, served, lookup)
        for lookup in get_args(Lookup)
        if lookup != event.options.lookup
    ]
    return {**baselines, **{other.name: other for other in others}}


def fit_oracle(event: EventInput, n_bins: int) -> BaselineFit:
    """Fit and score bins of ``-log p_y``: Finlay & Oberman, Table 2.

    It needs the label of the sample, so it is reported but never served. The loss is at least
    ``-log p_(1)``, with equality if the prediction is right, so no measure predicts the Top-1 event
    better.
    """
    options = replace(event.options, bins=n_bins)
    fit = fit_scored_table(event, loss, ORACLE, options, may_serve=False)
    return BaselineFit(name=ORACLE, log_floor=0.0, scores=fit.scores, evaluation=fit.evaluation)


def loss(records: Records) -> Uncertainty:
    """Return ``-log p_y`` in float32; an infinite loss is replaced by the largest number."""
    largest = float(np.finfo(np.float32).max)
    return np.minimum(-records.label_log_probability, largest).astype(np.float32)


def fold_differences(
    one: dict[str, FoldScore], other: dict[str, FoldScore], rivals: int = 1
) -> dict[str, PairedDifference]:
    """Return ``nll`` and ``brier`` of ``one`` minus those of ``other``, fold by fold."""
    return finite(
        {name: fold_difference(one[name].by_fold, other[name].by_fold, rivals) for name in COMPARED}
    )


def _fit_baseline(event: EventInput, method: BaselineMethod, served: MeasureFit) -> BaselineFit:
    """Fit and score one method.

    For logarithms its probabilities are clipped to ``[1 / (2 n), 1 - 1 / (2 n)]``, because a
    softmax of exactly 1 on an error has an infinite loss; bin tables are regularised instead.
    """
    samples, seed = event.samples, event.options.seed
    log_floor = 0.5 / samples.n_samples

    def fit(rows: Rows) -> Callable[[BinIndex], Predictions]:
        fitted = method.fit(samples, rows)
        return lambda others: judge_baseline(fitted, samples, others, log_floor)

    fitted = method.fit(samples, ALL)
    whole = judge_baseline(fitted, samples, ALL, log_floor)
    scores = cross_validate(fit, event.folds, whole, learned=method.learns)
    found = BaselineFit(
        name=method.name,
        log_floor=log_floor,
        fitted_on=samples.outcome.name if method.is_binary else None,
        scores=scores,
        parameters=fitted.parameters,
        difference=fold_differences(scores, served.scores),
        ece_band=None
        if method.learns or not samples.design.is_plain
        else confidence_band(whole.probability, scores["ece_15"].pooled, seed=seed),
    )
    if event.evaluation is None:
        return found
    judged = judge_baseline(fitted, event.evaluation, ALL, log_floor)
    evaluated = compute_scores(judged)
    return replace(
        found,
        evaluation=evaluated,
        evaluation_difference=_evaluation_difference(judged, event.evaluation, served),
        evaluation_ece_band=confidence_band(judged.probability, evaluated["ece_15"], seed=seed)
        if event.evaluation.design.is_plain
        else None,
    )


def judge_baseline(
    fitted: FittedBaseline, samples: EventSamples, rows: Rows, log_floor: float
) -> Predictions:
    """Return the predictions of a fitted baseline for the samples at ``rows``."""
    predicted = fitted(samples, rows)
    return Predictions(
        uncertainty=predicted.uncertainty,
        hits=samples.hits[rows],
        probability=predicted.probability,
        log_floor=log_floor,
        design=samples.design.take(rows),
    )


def _fit_other_lookup(event: EventInput, served: MeasureFit, lookup: Lookup) -> BaselineFit:
    """Fit the bins of the served measure with another lookup."""
    options = replace(event.options, lookup=lookup, bins=served.table.requested_bins)
    ranking = by_column(served.column)
    found = fit_scored_table(event, ranking, served.measure, options)
    difference, judging = {}, event.evaluation
    if judging is not None:
        values = ranking(judging.records)
        judged = predict_with_table(found.table, values, judging.hits, judging.design)
        difference = _evaluation_difference(judged, judging, served)
    curve = found.table.curve
    return BaselineFit(
        name=f"{lookup}_bins" if lookup != "smooth" else "smooth_curve",
        log_floor=0.0,
        scores=found.scores,
        evaluation=found.evaluation,
        parameters={"bins": float(found.table.n_bins)}
        if curve is None
        else {"knots": float(len(curve.uncertainty))},
        difference=fold_differences(found.scores, served.scores),
        evaluation_difference=difference,
    )


def _evaluation_difference(
    judged: Predictions, evaluation: EventSamples, served: MeasureFit
) -> dict[str, PairedDifference]:
    """Return ``nll`` and ``brier`` minus those of the served table, sample by sample."""
    values = evaluation.records.uncertainty[served.column]
    other = predict_with_table(served.table, values, evaluation.hits, evaluation.design)
    return paired_differences(sample_losses(judged), sample_losses(other), evaluation.design)

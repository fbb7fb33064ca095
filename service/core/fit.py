"""Fit a calibration: every measure to every event, cross-validated, judged and chosen from."""

from collections.abc import Callable
from dataclasses import replace
from itertools import product

import numpy as np

from service.core.arrays import BinIndex
from service.core.canonical_order import in_canonical_order
from service.core.fit_baseline import fit_baselines, fold_differences
from service.core.fit_measure import fit_measure
from service.core.fit_options import FitOptions
from service.core.fit_oracle import fit_oracle
from service.core.fit_reliability import fit_reliability
from service.core.fit_result import BaselineFit, EventFit, Fit, MeasureFit
from service.core.fit_verdict import reach_verdict
from service.core.fit_warnings import event_warnings, sample_warnings
from service.core.folds import stratified_folds
from service.core.loss_scatter import loss_scatter
from service.core.measures import check_measures, column, is_supplied
from service.core.model_scores import ModelScores, model_scores
from service.core.records import Records

__all__ = ["BaselineFit", "EventFit", "Fit", "FitOptions", "MeasureFit", "fit_calibration"]

Progress = Callable[[int, int], None]


def fit_calibration(
    records: Records,
    *,
    options: FitOptions,
    evaluation: Records | None = None,
    on_progress: Progress | None = None,
) -> Fit:
    """Fit and judge a calibration.

    No number depends on the order of the samples, to the last bit.

    Parameters
    ----------
    records : Records
        The calibration set: at least one sample, with the column of every measure and event, and
        ``neg_log_topk_mass`` of every event, which the raw softmax is read from.
    options : FitOptions
    evaluation : Records, optional
        Labelled samples that judge the tables and fit nothing.
    on_progress : callable, optional
        Called as ``on_progress(done, total)`` after each measure of each event.

    Raises
    ------
    ValueError
        If there is no sample, or a set lacks a column.
    """
    _check_columns(records, "records", options)
    if records.n_samples == 0:
        raise ValueError("records must hold at least one sample")
    if evaluation is not None:
        _check_columns(evaluation, "evaluation", options)
        evaluation = in_canonical_order(evaluation)
    records = in_canonical_order(records)
    folds = {
        k: stratified_folds(records.hits(k), records.tie_key, n_folds=options.folds)
        for k in options.top_k
    }
    measures: dict[int, dict[str, MeasureFit]] = {k: {} for k in options.top_k}
    tasks = list(product(options.top_k, options.measures))
    for done, (k, name) in enumerate(tasks, start=1):
        measures[k][name] = fit_measure(
            records, k, name, folds=folds[k], options=options, evaluation=evaluation
        )
        if on_progress is not None:
            on_progress(done, len(tasks))
    events = {
        k: _fit_event(records, k, measures[k], folds[k], options=options, evaluation=evaluation)
        for k in options.top_k
    }
    warnings = list(sample_warnings(records.n_samples, options))
    for event in events.values():
        warnings.extend(event_warnings(event, options))
    return Fit(events, warnings, _model_scores(records, evaluation, options.top_k))


def _fit_event(
    records: Records,
    k: int,
    measures: dict[str, MeasureFit],
    folds: BinIndex,
    *,
    options: FitOptions,
    evaluation: Records | None,
) -> EventFit:
    """Choose the measure that serves, and set baselines and the oracle beside it."""
    served = options.serve.get(k) or least_nll(
        {name: found for name, found in measures.items() if not is_supplied(name)}
    )
    baselines = fit_baselines(
        records, k, measures[served], folds=folds, options=options, evaluation=evaluation
    )
    shown = replace(
        measures[served],
        reliability=fit_reliability(
            records, k, measures[served], folds=folds, options=options, evaluation=evaluation
        ),
        scatter=loss_scatter(records, measures[served].column),
    )
    return EventFit(
        k=k,
        accuracy=float(np.mean(records.hits(k))),
        n_samples=records.n_samples,
        measures=_beside_served(measures, shown),
        baselines=baselines,
        served=served,
        verdict=reach_verdict(k, measures[served], baselines),
        oracle=fit_oracle(
            records,
            k,
            measures[served].table.requested_bins,
            folds=folds,
            options=options,
            evaluation=evaluation,
        ),
    )


def _beside_served(measures: dict[str, MeasureFit], served: MeasureFit) -> dict[str, MeasureFit]:
    """Return the measures, each with its difference from the one served, which is as given."""
    return {
        name: served
        if name == served.measure
        else replace(found, difference=fold_differences(found.scores, served.scores))
        for name, found in measures.items()
    }


def _model_scores(
    records: Records, evaluation: Records | None, top_k: tuple[int, ...]
) -> dict[str, ModelScores]:
    sets = {"calibration": records, "evaluation": evaluation}
    found = {
        name: model_scores(given, top_k=top_k) for name, given in sets.items() if given is not None
    }
    return {name: scores for name, scores in found.items() if scores is not None}


def _check_columns(records: Records, name: str, options: FitOptions) -> None:
    check_measures(options.measures, logits="energy" in records.uncertainty)
    for k in options.top_k:
        for measure in (*options.measures, "neg_log_topk_mass"):
            if column(measure, k) not in records.uncertainty:
                raise ValueError(
                    f"{name} must hold {column(measure, k)}, not only "
                    f"{', '.join(records.uncertainty) or 'no measure at all'}"
                )


def least_nll(measures: dict[str, MeasureFit]) -> str:
    """Return the measure of least cross-validated negative log-likelihood, the first of equals.

    A mean over fewer folds, as an infinite one is left out, comes after any over more.
    """

    def rank(name: str) -> tuple[int, float]:
        nll = measures[name].scores["nll"]
        return -nll.folds, np.inf if nll.mean is None else nll.mean

    return min(measures, key=rank)

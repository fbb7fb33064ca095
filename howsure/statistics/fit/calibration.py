"""Fit a calibration: fit and cross-validate every measure and event, and choose what to serve."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import product

import numpy as np

from howsure.statistics.accepted import count_accepted
from howsure.statistics.arrays import BinIndex
from howsure.statistics.bins.edges import edges_cut_ties
from howsure.statistics.bins.fit import fit_bin_table
from howsure.statistics.bins.guarantee import Guarantee, guarantee
from howsure.statistics.bins.table import BinTable
from howsure.statistics.coarse import fit_coarse_table
from howsure.statistics.comparison import LEAST_ANSWERS
from howsure.statistics.diagnostics.consistency import cross_validated_band, evaluation_band
from howsure.statistics.diagnostics.curves import fit_curves
from howsure.statistics.diagnostics.loss_scatter import USUAL_TOP, loss_scatter, top5_hits
from howsure.statistics.diagnostics.rank_grid import fit_rank_grid
from howsure.statistics.diagnostics.reliability import HeldOut, Reliability, reliability
from howsure.statistics.fit.cross_validation import (
    ScoredTable,
    by_column,
    fit_scored_table,
    predict_with_table,
)
from howsure.statistics.fit.event_samples import ALL, EventInput, EventSamples, Rows
from howsure.statistics.fit.options import FitOptions, is_fixed_beforehand
from howsure.statistics.fit.result import BaselineFit, EventFit, Fit, MeasureFit
from howsure.statistics.fit.scored_baselines import fit_baselines, fit_oracle, fold_differences
from howsure.statistics.fit.verdict import rarer_outcome, reach_verdict
from howsure.statistics.label_model.fit import LabelFit, fit_label_model, n_classes_of
from howsure.statistics.label_model.recorded import with_learned
from howsure.statistics.measures import LEARNED, check_measures, column, parse_measure
from howsure.statistics.model_scores import ModelScores, model_scores
from howsure.statistics.ranking import OOD_LEVELS, RankedSamples, ood_thresholds, ranking_of
from howsure.statistics.records.order import in_canonical_order, stratified_folds
from howsure.statistics.records.records import Records
from howsure.statistics.selective import SelectiveResult, fit_selective

__all__ = ["BaselineFit", "EventFit", "Fit", "FitOptions", "MeasureFit", "fit_calibration"]

Progress = Callable[[int, int], None]


class MissingColumn(ValueError):
    """A set lacks a measure: that of a refit may have been recorded before there was one."""


def fit_calibration(
    records: Records,
    *,
    options: FitOptions,
    evaluation: Records | None = None,
    n_classes: int | None = None,
    on_progress: Progress | None = None,
) -> Fit:
    """Fit and evaluate a calibration.

    No result depends on the order of the samples, to the last bit.

    Parameters
    ----------
    records : Records
        The calibration set: at least one sample, with the column of every measure and event, and
        ``neg_log_topk_mass`` of every event for the raw softmax.
    options : FitOptions
    evaluation : Records, optional
        Labelled samples for evaluating the tables, not used in the fit.
    n_classes : int, optional
        Of the model; by default one more than the largest class recorded.
    on_progress : callable, optional
        Called as ``on_progress(done, total)`` after each measure of each event.

    Raises
    ------
    ValueError
        If there is no sample.
    MissingColumn
        If a set lacks a column.
    """
    _check_columns(records, "records", options)
    if records.n_samples == 0:
        raise ValueError("records must hold at least one sample")
    if evaluation is not None:
        _check_columns(evaluation, "evaluation", options)
        evaluation = in_canonical_order(evaluation)
    records = in_canonical_order(records)
    n_classes = n_classes_of(records, evaluation) if n_classes is None else n_classes
    folds = {k: _folds(records, k, options) for k in options.top_k}
    learned: dict[int, LabelFit] = {}
    if LEARNED in options.measures:
        first = folds[options.top_k[0]]
        learned = fit_label_model(records, first, n_classes=n_classes, top_k=options.top_k)
        columns = {column(LEARNED, k): fit.uncertainty for k, fit in learned.items()}
        records = records.with_uncertainty(columns)
        if evaluation is not None:
            evaluation = with_learned(evaluation, {k: fit.model for k, fit in learned.items()})
    inputs = {
        k: EventInput(
            samples=EventSamples(records, k),
            evaluation=None if evaluation is None else EventSamples(evaluation, k),
            folds=folds[k],
            options=options,
            learned=learned.get(k),
        )
        for k in options.top_k
    }
    measures: dict[int, dict[str, MeasureFit]] = {k: {} for k in options.top_k}
    tasks = list(product(options.top_k, options.measures))
    for done, (k, name) in enumerate(tasks, start=1):
        measures[k][name] = _fit_measure(inputs[k], name)
        if on_progress is not None:
            on_progress(done, len(tasks))
    events = {k: _fit_event(inputs[k], measures[k]) for k in options.top_k}
    return Fit(events, _model_scores(records, evaluation, options.top_k))


def _folds(records: Records, k: int, options: FitOptions) -> BinIndex:
    hits, design = records.hits(k), records.design
    return stratified_folds(hits, records.tie_key, n_folds=options.folds, design=design)


def _fit_measure(event: EventInput, measure: str) -> MeasureFit:
    """Fit one measure to the event: choose bins, score them, and find all thresholds."""
    samples, options, level = event.samples, event.options, event.options.interval.level
    name = column(measure, samples.k)
    uncertainty = samples.records.uncertainty[name]
    ranked = ranking_of(uncertainty, samples.hits, samples.design)
    found = fit_scored_table(event, by_column(name), measure)
    evaluation_ece_band = None
    # Bands redraw the labels of independent samples, each of which counts as one.
    is_plain = samples.design.is_plain
    if event.evaluation is not None and is_plain and event.evaluation.design.is_plain:
        judging = event.evaluation.records.uncertainty[name]
        evaluation_ece_band = evaluation_band(
            found.table, uncertainty, judging, event.evaluation.hits, seed=options.seed
        )
    return MeasureFit(
        **vars(found),
        measure=measure,
        column=name,
        ece_band=cross_validated_band(
            found.table,
            uncertainty,
            event.folds,
            observed=found.scores["ece_15"].mean if is_plain else None,
            seed=options.seed,
        ),
        evaluation_ece_band=evaluation_ece_band,
        coarse=fit_coarse_table(ranked, targets=options.targets, level=level),
        ood_thresholds=ood_thresholds(ranked, sorted({*OOD_LEVELS, options.ood_level})),
        selective=tuple(_selective(event, ranked, name)),
        curves=fit_curves(ranked, level=level),
        guarantee=_guarantee(event, found, measure),
        rank_grid=fit_rank_grid(
            uncertainty, samples.records.tie_key, n_bins=found.table.requested_bins
        ),
    )


def _selective(event: EventInput, ranked: RankedSamples, name: str) -> Iterator[SelectiveResult]:
    """Yield the threshold of each target, with its effect on the evaluation set."""
    for target in event.options.selective:
        found = fit_selective(ranked, target)
        if found.threshold is not None and event.evaluation is not None:
            judging = event.evaluation
            values = judging.records.uncertainty[name]
            accepted = count_accepted(values, judging.hits, found.threshold, judging.design)
            found = replace(found, evaluation=accepted)
        yield found


def _guarantee(event: EventInput, found: ScoredTable, measure: str) -> Guarantee:
    """Return the guarantee of the step table without pooling, whatever is served."""
    options, n_bins = event.options, found.table.requested_bins
    uncertainty = event.samples.records.uncertainty[column(measure, event.samples.k)]
    table = found.table
    if table.monotone:
        plain = replace(options, lookup="step", monotone=False)
        samples = event.samples
        table = fit_bin_table(
            uncertainty, samples.hits, n_bins=n_bins, design=samples.design, **plain.of_table
        )
    measure_fixed = is_fixed_beforehand(event.samples.k, options.measures, options.serve)
    tried = sum(candidate.n_bins for candidate in found.candidates)
    return guarantee(
        table,
        fixed=measure_fixed and options.bins != "auto",
        n_candidate_bins=tried if measure_fixed else tried * len(options.measures),
        alpha=1.0 - options.interval.level,
        ties=edges_cut_ties(uncertainty, n_bins),
        learned=measure == LEARNED,
    )


def _fit_event(event: EventInput, measures: dict[str, MeasureFit]) -> EventFit:
    """Choose the measure to serve, and fit the baselines and the oracle."""
    samples = event.samples
    name = event.options.serve.get(samples.k) or best_measure(
        {name: found for name, found in measures.items() if parse_measure(name).kind != "supplied"}
    )
    served = measures[name]
    baselines = fit_baselines(event, served)
    shown = replace(
        served,
        reliability=_reliability(event, served),
        scatter=loss_scatter(samples.records, served.column),
        top5_hits=top5_hits(samples.records, samples.k, served.table, served.column)
        if samples.k < USUAL_TOP in event.options.top_k
        else None,
    )
    return EventFit(
        k=samples.k,
        accuracy=samples.share_of_hits(),
        n_samples=samples.n_samples,
        measures=_beside_served(measures, shown),
        baselines=baselines,
        served=name,
        verdict=reach_verdict(served, baselines),
        oracle=fit_oracle(event, served.table.requested_bins),
        learned=event.learned,
    )


def _beside_served(measures: dict[str, MeasureFit], served: MeasureFit) -> dict[str, MeasureFit]:
    """Return the measures, each with its difference from the served one."""
    rivals = len(measures) - 1
    return {
        name: served
        if name == served.measure
        else replace(found, difference=fold_differences(found.scores, served.scores, rivals))
        for name, found in measures.items()
    }


def _model_scores(
    records: Records, evaluation: Records | None, top_k: tuple[int, ...]
) -> dict[str, ModelScores]:
    sets = {"calibration": records, "evaluation": evaluation}
    return {
        name: scores
        for name, one in sets.items()
        if one is not None and (scores := model_scores(one, top_k=top_k)) is not None
    }


def _check_columns(records: Records, name: str, options: FitOptions) -> None:
    check_measures(options.measures, logits="energy" in records.uncertainty)
    needed = ["entropy" if measure == LEARNED else measure for measure in options.measures]
    for k in options.top_k:
        for measure in (*needed, "neg_log_topk_mass"):
            if column(measure, k) not in records.uncertainty:
                raise MissingColumn(
                    f"{name} must hold {column(measure, k)}, not only "
                    f"{', '.join(records.uncertainty) or 'no measure at all'}"
                )


PREFERRED = (LEARNED, "neg_log_topk_mass")


def best_measure(measures: dict[str, MeasureFit]) -> str:
    """Return the measure to serve, by cross-validated negative log-likelihood.

    It is the preferred one, ``learned`` before ``neg_log_topk_mass``, among those that are not
    clearly above the least; if there is none, the least. Fewer than ten misses or hits do not tell
    that. Infinite folds are left out. A mean over fewer folds ranks after any mean over more.
    """

    def rank(name: str) -> tuple[int, float]:
        nll = measures[name].scores["nll"]
        return -nll.folds, np.inf if nll.mean is None else nll.mean

    least = min(measures, key=rank)
    is_rare = rarer_outcome(measures[least].table)[0] < LEAST_ANSWERS
    for name in PREFERRED:
        if name in measures and rank(name)[0] == rank(least)[0]:
            scores, others = measures[name].scores, measures[least].scores
            lead = fold_differences(scores, others, len(measures) - 1).get("nll")
            if name == least or is_rare or (lead is not None and not lead.clear):
                return name
    return least


def _reliability(event: EventInput, served: MeasureFit) -> Reliability | None:
    """Return the reliability of the served probabilities and of the model's own.

    They are computed on the evaluation set, if there is one. Otherwise the table is fitted to half
    of the folds and evaluated on the other half; the result is None if there is only one fold.
    """

    def judge(table: BinTable, samples: EventSamples, rows: Rows, held_out: HeldOut) -> Reliability:
        uncertainty = samples.records.uncertainty[served.column][rows]
        return reliability(
            predict_with_table(table, uncertainty, samples.hits[rows], samples.design.take(rows)),
            raw=samples.records.raw_probability(samples.k)[rows],
            predicted=samples.records.top_classes[rows, 0].astype(np.int64),
            n_classes=samples.records.top_classes.shape[1],
            held_out=held_out,
            level=event.options.interval.level,
        )

    if event.evaluation is not None:
        return judge(served.table, event.evaluation, ALL, "evaluation")
    samples, judging = event.samples, event.folds % 2 == 1
    if not judging.any():
        return None
    uncertainty = samples.records.uncertainty[served.column]
    table = fit_bin_table(
        uncertainty[~judging],
        samples.hits[~judging],
        n_bins=served.table.requested_bins,
        measure=served.measure,
        design=samples.design.take(~judging),
        least=float(uncertainty.min()),
        **event.options.of_table,
    )
    return judge(table, samples, np.flatnonzero(judging), "half")

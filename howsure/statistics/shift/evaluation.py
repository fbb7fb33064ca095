"""Evaluate the tables of a finished calibration on another set."""

from collections.abc import Mapping, Sequence
from functools import partial
from types import MappingProxyType

import numpy as np
from scipy.special import expit

from howsure.statistics.arrays import Uncertainty, mean_of
from howsure.statistics.bins.edges import assign_bins
from howsure.statistics.bins.table import BinTable
from howsure.statistics.diagnostics.consistency import evaluation_band
from howsure.statistics.effective import effective_share
from howsure.statistics.fit.cross_validation import predict_with_table
from howsure.statistics.fit.event_samples import EventSamples
from howsure.statistics.measures import column
from howsure.statistics.model_scores import model_scores
from howsure.statistics.ranking import OOD_LEVELS, ood_thresholds, ranking_of
from howsure.statistics.records.order import in_canonical_order
from howsure.statistics.records.records import Records
from howsure.statistics.scores import compute_scores
from howsure.statistics.shift.gap import gap_test
from howsure.statistics.shift.methods import best_on_set, compare_methods
from howsure.statistics.shift.permutation import (
    RESAMPLES,
    ece_permutation_test,
    gap_permutation_test,
)
from howsure.statistics.shift.population import Histogram, fit_histogram, population_shift
from howsure.statistics.shift.result import (
    OUTCOMES,
    ConfidenceCount,
    EvaluationResult,
    EventEvaluation,
    MeasureEvaluation,
)
from howsure.statistics.shift.verdict import SHIFT_LEVEL, shift_outcome

Tables = Mapping[int, Mapping[str, BinTable]]


def evaluate_set(  # noqa: PLR0913 - two sets, and the choices of a calibration
    tables: Tables,
    calibration: Records,
    further: Records,
    *,
    served: Mapping[int, str],
    labelled: bool,
    n_classes: int,
    levels: Sequence[float] = OOD_LEVELS,
    seed: int = 0,
    refitted: Mapping[str, Uncertainty] = MappingProxyType({}),
) -> EvaluationResult:
    """Evaluate another set, labelled or not: Ovadia et al., section 4.

    No result depends on the order of the samples.

    Parameters
    ----------
    tables : mapping of int to mapping of str to BinTable
        Of the calibration, by event and measure; nothing is refitted.
    calibration, further : Records
        At least one sample each, with the column of every table.
    served : mapping of int to str
        The measure whose table is served, by event.
    labelled : bool
        Whether ``further`` is labelled; otherwise its labels are ignored.
    n_classes : int
        Of the model: the entropy histogram ends at its logarithm.
    levels : sequence of float
        Of out-of-distribution thresholds.
    seed : int
        Of the labels drawn for consistency bands.
    refitted : mapping of str to ndarray of float32
        The columns of ``calibration`` that are cross-fitted, computed by the one formula that also
        made those of ``further``. Otherwise folds that differ would look like another population.

    Raises
    ------
    ValueError
        If a set has no sample or lacks a column, or no table of the served measure is given.
    """
    for name, records in (("calibration", calibration), ("further", further)):
        _check(name, records, tables, served)
    further = in_canonical_order(further)
    events = {}
    deals = n_permutations(len(tables)) if labelled else None
    judge = partial(_judge_measure, calibration, further, levels=levels, deals=deals, seed=seed)
    for k in tables:
        measures = {
            measure: judge(table, measure=measure, k=k, refitted=refitted)
            for measure, table in tables[k].items()
        }
        methods = {}
        if labelled:
            name = column(served[k], k)
            sets = EventSamples(calibration, k), EventSamples(further, k)
            methods = compare_methods(tables[k][served[k]], name, *sets)
        outcome = shift_outcome(measures[served[k]], level=SHIFT_LEVEL / len(tables))
        events[k] = EventEvaluation(
            k=k,
            accuracy=mean_of(further.hits(k), further.weights) if labelled else None,
            served=served[k],
            measures=measures,
            shifted=outcome != "alike",
            outcome=outcome,
            effective=effective_share(further.hits(k), further.design) if labelled else None,
            methods=methods,
            best=best_on_set(methods),
        )
    return EvaluationResult(
        n_samples=further.n_samples,
        labelled=labelled,
        events=events,
        model_scores=model_scores(further, top_k=tuple(tables)) if labelled else None,
        confidence=fit_histogram(_confidence(further), _confidence(calibration), largest=1.0),
        entropy=_entropy_histogram(further, calibration, n_classes),
        above_confidence=_above_confidence(further, calibration),
        shifted=any(event.shifted for event in events.values()),
        outcome=min((event.outcome for event in events.values()), key=OUTCOMES.index),
    )


def _check(name: str, records: Records, tables: Tables, served: Mapping[int, str]) -> None:
    if records.n_samples == 0:
        raise ValueError(f"{name} must hold at least one sample")
    for k, by_measure in tables.items():
        if served.get(k) not in by_measure:
            raise ValueError(f"served must name one of the measures of Top-{k}, {[*by_measure]}")
        for measure in by_measure:
            if column(measure, k) not in records.uncertainty:
                raise ValueError(f"{name} must hold {column(measure, k)}")


def _judge_measure(  # noqa: PLR0913 - as above
    calibration: Records,
    further: Records,
    table: BinTable,
    *,
    measure: str,
    k: int,
    levels: Sequence[float],
    deals: int | None,
    seed: int,
    refitted: Mapping[str, Uncertainty],
) -> MeasureEvaluation:
    """Evaluate one table; ``deals`` is the number of permutations, None without labels."""
    name = column(measure, k)
    values, known = further.uncertainty[name], calibration.uncertainty[name]
    scores, band, p_value, gap_p, stated, right = None, None, None, None, None, None
    if deals is not None:
        judged = predict_with_table(table, values, further.hits(k), further.design)
        scores = compute_scores(judged)
        stated, right = judged.mean(judged.probability), judged.mean(judged.hits)
        # Permutations are of independent samples, each of which counts as one.
        if not (calibration.design.is_plain and further.design.is_plain):
            gap_p = gap_test(table, known, calibration.hits(k), judged, design=calibration.design)
        else:
            band = evaluation_band(table, known, values, judged.hits, seed=seed)
            rng = np.random.default_rng(seed)
            p_value = ece_permutation_test(table, judged, rng=rng, resamples=deals)
            gap_p = gap_permutation_test(table, known, judged, rng=rng, resamples=deals)
    return MeasureEvaluation(
        measure=measure,
        column=name,
        scores=scores,
        stated=stated,
        right=right,
        ece_band=band,
        ece_p_value=p_value,
        gap_p_value=gap_p,
        discarded={
            level: mean_of(values > np.float32(threshold), further.weights)
            for level, threshold in ood_thresholds(
                ranking_of(known, design=calibration.design), levels
            ).items()
        },
        population=population_shift(
            values,
            refitted.get(name, known),
            design=further.design,
            calibration_design=calibration.design,
        ),
        occupancy=tuple(
            np.bincount(assign_bins(values, table.edges), minlength=table.n_bins).tolist()
        ),
    )


def n_permutations(n_events: int) -> int:
    """Return how many permutations allow a p-value below the level of each event."""
    return max(RESAMPLES, int(np.ceil(2.0 * n_events / SHIFT_LEVEL)))


def _confidence(records: Records) -> np.ndarray:
    return np.asarray(expit(records.top_log_odds[:, 0].astype(np.float64)))


def _entropy_histogram(further: Records, calibration: Records, n_classes: int) -> Histogram | None:
    ours, theirs = (records.uncertainty.get("entropy") for records in (further, calibration))
    if ours is None or theirs is None:
        return None
    return fit_histogram(ours, theirs, largest=float(np.log(n_classes)))


def _above_confidence(further: Records, calibration: Records) -> tuple[ConfidenceCount, ...]:
    ours, theirs = (model_scores(records, top_k=()) for records in (further, calibration))
    if ours is None or theirs is None:
        return ()
    return tuple(
        ConfidenceCount(
            confidence=row.confidence,
            count=row.count,
            share=row.count / ours.n_samples,
            calibration_share=known.count / theirs.n_samples,
        )
        for row, known in zip(ours.by_confidence, theirs.by_confidence, strict=True)
    )

"""Fit one uncertainty measure to one event: choose bins, cross-validate, judge."""

from service.core.arrays import BinIndex
from service.core.consistency import cross_validated_band, evaluation_band
from service.core.fit_options import FitOptions
from service.core.fit_result import MeasureFit
from service.core.judged_table import LabelledUncertainty, fit_judged_table, judge_table
from service.core.measures import column
from service.core.records import Records

__all__ = ["fit_measure", "judge_table"]


def fit_measure(
    records: Records,
    k: int,
    measure: str,
    *,
    folds: BinIndex,
    options: FitOptions,
    evaluation: Records | None,
) -> MeasureFit:
    """Fit and judge the table of one measure for the Top-k event."""
    name = column(measure, k)
    samples = LabelledUncertainty(records.uncertainty[name], records.hits(k))
    judging = None
    if evaluation is not None:
        judging = LabelledUncertainty(evaluation.uncertainty[name], evaluation.hits(k))
    found = fit_judged_table(samples, folds=folds, options=options, evaluation=judging)
    evaluation_ece_band = None
    if judging is not None:
        evaluation_ece_band = evaluation_band(
            found.table, samples.uncertainty, judging.uncertainty, judging.hits, seed=options.seed
        )
    return MeasureFit(
        measure=measure,
        column=name,
        table=found.table,
        quantile_bins=found.quantile_bins,
        scores=found.scores,
        evaluation=found.evaluation,
        candidates=found.candidates,
        ece_band=cross_validated_band(
            found.table,
            samples.uncertainty,
            folds,
            observed=found.scores["ece"].mean,
            seed=options.seed,
        ),
        evaluation_ece_band=evaluation_ece_band,
    )

"""Fit one uncertainty measure to one event: choose bins, judge, and say what may be decided."""

from service.core.arrays import BinIndex
from service.core.coarse import fit_coarse_table
from service.core.consistency import ConsistencyBand, cross_validated_band, evaluation_band
from service.core.curves import fit_curves
from service.core.cut_points import cut_points
from service.core.fit_options import FitOptions
from service.core.fit_result import MeasureFit
from service.core.guarantee import Guarantee, guarantee
from service.core.judged_table import (
    JudgedTable,
    LabelledUncertainty,
    fit_judged_table,
    judge_table,
)
from service.core.measures import column
from service.core.out_of_distribution import OOD_LEVELS, ood_thresholds
from service.core.rank_grid import fit_rank_grid
from service.core.records import Records
from service.core.selective import fit_selective

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
    samples = labelled(records, name, k)
    judging = None if evaluation is None else labelled(evaluation, name, k)
    found = fit_judged_table(samples, folds=folds, options=options, evaluation=judging)
    uncertainty, hits = samples.uncertainty, samples.hits
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
            uncertainty,
            folds,
            observed=found.scores["ece"].mean,
            seed=options.seed,
        ),
        evaluation_ece_band=_evaluation_band(found, samples, judging, options),
        coarse=fit_coarse_table(
            uncertainty, hits, targets=options.targets, level=options.interval.level
        ),
        ood_thresholds=ood_thresholds(uncertainty, sorted({*OOD_LEVELS, options.ood_level})),
        selective=tuple(fit_selective(uncertainty, hits, target) for target in options.selective),
        curves=fit_curves(uncertainty, hits, level=options.interval.level),
        guarantee=_guarantee(found, samples, k, options),
        rank_grid=fit_rank_grid(uncertainty, records.tie_key, n_bins=found.table.requested_bins),
    )


def labelled(records: Records, name: str, k: int) -> LabelledUncertainty:
    """Return one column of the records beside the hits of the Top-k event."""
    return LabelledUncertainty(records.uncertainty[name], records.hits(k))


def _evaluation_band(
    found: JudgedTable,
    samples: LabelledUncertainty,
    judging: LabelledUncertainty | None,
    options: FitOptions,
) -> ConsistencyBand | None:
    if judging is None:
        return None
    return evaluation_band(
        found.table, samples.uncertainty, judging.uncertainty, judging.hits, seed=options.seed
    )


def _guarantee(
    found: JudgedTable, samples: LabelledUncertainty, k: int, options: FitOptions
) -> Guarantee:
    measure_fixed = k in options.serve or len(options.measures) == 1
    tried = sum(candidate.n_bins for candidate in found.candidates)
    return guarantee(
        found.table,
        fixed=measure_fixed and options.bins != "auto",
        n_candidate_bins=tried if measure_fixed else tried * len(options.measures),
        alpha=1.0 - options.interval.level,
        ties=cut_points(samples.uncertainty, samples.hits).has_ties,
    )

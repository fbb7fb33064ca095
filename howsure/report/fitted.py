"""The parts of a report that a fit makes, before anything is stored or exported."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import msgspec

from howsure.report.event import Verdict
from howsure.report.measure import (
    Analysis,
    Baseline,
    ClassEffects,
    Curves,
    EffectiveBins,
    FoldScore,
    RankGrid,
    Scored,
)
from howsure.report.parts import Phase
from howsure.report.words.compared_methods import fitted_on, verdict_sentence
from howsure.report.words.guarantees import guarantee_in_words
from howsure.statistics.comparison import PairedDifference
from howsure.statistics.error_samples import MislabelledCandidate, mislabelled_candidates
from howsure.statistics.fit import cross_validation
from howsure.statistics.fit.result import BaselineFit, EventFit, MeasureFit
from howsure.statistics.measures import LEARNED
from howsure.statistics.odds import merged_odds
from howsure.statistics.plain import to_plain
from howsure.statistics.records.records import Records

MISLABELLED_SHOWN = 50


def fitted_analysis(event: EventFit, measure: str) -> Analysis:
    """Return what the calibration set says about a measure, besides its bins."""
    fit = event.measures[measure]
    effective, grid = fit.table.effective, fit.rank_grid
    effects = None
    if measure == LEARNED and event.learned is not None:
        effects = ClassEffects(
            class_effects=event.learned.class_effects.tolist(),
            class_counts=event.learned.class_counts.tolist(),
        )
    return Analysis(
        **_scored(fit),
        ece_band=fit.ece_band,
        evaluation_ece_band=fit.evaluation_ece_band,
        guarantee=None if fit.guarantee is None else guarantee_in_words(fit.guarantee),
        coarse=fit.coarse,
        ood_thresholds={str(level): value for level, value in fit.ood_thresholds.items()},
        selective=list(fit.selective),
        rank_grid=None if grid is None else msgspec.convert(to_plain(grid), RankGrid),
        difference=fit.difference,
        reliability=fit.reliability,
        effective=None
        if effective is None
        else msgspec.convert(to_plain(effective), EffectiveBins),
        learned=effects,
        merged_odds=merged_odds(fit.table),
        top5_hits=None if fit.top5_hits is None else fit.top5_hits.tolist(),
    )


def fitted_curves(fit: MeasureFit) -> Curves:
    """Return the curves and the scatter plot, which are long."""
    curves: dict[str, Any] = to_plain(fit.curves) or {}
    return msgspec.convert({**curves, "scatter": to_plain(fit.scatter)}, Curves)


def fitted_baselines(event: EventFit) -> dict[str, Baseline]:
    """Return the other methods, with their differences from the served table."""
    rivals = len(event.baselines)

    def part(fit: BaselineFit) -> Baseline:
        differences: dict[Phase, dict[str, PairedDifference]] = {
            "cross_validation": fit.difference,
            "evaluation": fit.evaluation_difference,
        }
        return Baseline(
            **_scored(fit),
            ece_band=fit.ece_band,
            evaluation_ece_band=fit.evaluation_ece_band,
            log_floor=fit.log_floor,
            parameters=fit.parameters,
            difference={
                phase: {name: replace(one, rivals=rivals) for name, one in of_phase.items()}
                for phase, of_phase in differences.items()
            },
        )

    return {name: part(fit) for name, fit in event.baselines.items()}


def fitted_oracle(event: EventFit) -> Scored | None:
    """Return the scores of bins of the loss."""
    return None if event.oracle is None else Scored(**_scored(event.oracle))


def fitted_verdict(event: EventFit, folds: int) -> Verdict:
    """Return the best method and its lead, with sentences."""
    facts = event.verdict
    sentence, methods = verdict_sentence(event, folds), fitted_on(event)
    if facts is None:
        return Verdict(sentence=sentence, fitted_on=methods)
    return Verdict(
        best=facts.best,
        cross_validation=facts.cross_validation,
        evaluation=facts.evaluation,
        outdone=facts.outdone,
        sentence=sentence,
        fitted_on=methods,
    )


def fitted_mislabelled(event: EventFit, records: Records) -> list[MislabelledCandidate]:
    """Return wrong predictions in the most reliable bins."""
    served = event.measures[event.served]
    most = MISLABELLED_SHOWN
    return list(mislabelled_candidates(records, event.k, served.column, served.table, n=most))


def _scored(fit: cross_validation.Scored) -> Mapping[str, Any]:
    """Return the cross-validated scores, and those on the evaluation set if there is one."""
    scores = {
        name: FoldScore(mean=one.mean, std=one.std, folds=one.folds, pooled=one.pooled)
        for name, one in fit.scores.items()
    }
    return {"scores": scores, "evaluation": fit.evaluation or None}

"""A bin table with its number of bins chosen, cross-validated and judged."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np

from service.core.arrays import BinIndex, Hits, Uncertainty
from service.core.bins.edges import quantile_edges
from service.core.bins.fit_table import fit_bin_table
from service.core.bins.table import BinTable
from service.core.candidates import BinCandidate, candidate_bins, choose_bins
from service.core.crossval import FoldScore, fold_scores, mean_and_std, pooled_scores, splits
from service.core.cut_points import merge_underflow
from service.core.fit_options import FitOptions
from service.core.scores import SCORES, Judged, applicable, judge

FitTable: TypeAlias = Callable[[Uncertainty, Hits, int], BinTable]


@dataclass(frozen=True, eq=False)
class LabelledUncertainty:
    """Samples with the uncertainty that ranks them and what came true.

    Attributes
    ----------
    uncertainty : ndarray of float32, shape (n_samples,)
    hits : ndarray of bool, shape (n_samples,)
    """

    uncertainty: Uncertainty
    hits: Hits


@dataclass(frozen=True, eq=False)
class RankedSamples(LabelledUncertainty):
    """Samples by ascending uncertainty, so that sorting any fold of them again costs little.

    Attributes
    ----------
    folds : ndarray of int64, shape (n_samples,)
    """

    folds: BinIndex


@dataclass(frozen=True, eq=False)
class JudgedTable:
    """A table fitted on all samples, and how well it does; attributes as those of `MeasureFit`."""

    table: BinTable
    quantile_bins: int
    scores: dict[str, FoldScore]
    evaluation: dict[str, float | None] | None
    candidates: tuple[BinCandidate, ...]


def fit_judged_table(
    samples: LabelledUncertainty,
    *,
    folds: BinIndex,
    options: FitOptions,
    evaluation: LabelledUncertainty | None,
) -> JudgedTable:
    """Choose the number of bins, fit the table and judge it."""
    order = np.argsort(samples.uncertainty, kind="stable")
    ranked = RankedSamples(samples.uncertainty[order], samples.hits[order], folds[order])
    fit_table = _table_fitter(options)
    tried, n_bins = _choose(ranked, fit_table, options)
    table = fit_table(ranked.uncertainty, ranked.hits, n_bins)
    judged = None
    if evaluation is not None:
        judged = judge(judge_table(table, evaluation.uncertainty, evaluation.hits))
    return JudgedTable(
        table=table,
        quantile_bins=len(quantile_edges(ranked.uncertainty, n_bins)) - 1,
        scores=_cross_validate(ranked, fit_table, table),
        evaluation=judged,
        candidates=tried,
    )


def judge_table(table: BinTable, uncertainty: Uncertainty, hits: Hits) -> Judged:
    """Return what ``table`` says of samples beside what came true.

    Values below float32's normal range rank as equal, as they share a bin.
    """
    found = table.look_up(uncertainty)
    return Judged(
        uncertainty=merge_underflow(uncertainty),
        hits=hits,
        probability=found.probability,
        bins=found.bin,
        table=table,
    )


def _table_fitter(options: FitOptions) -> FitTable:
    def fit_table(uncertainty: Uncertainty, hits: Hits, n_bins: int) -> BinTable:
        return fit_bin_table(
            uncertainty,
            hits,
            n_bins=n_bins,
            prior_strength=options.prior_strength,
            interval=options.interval,
            lookup=options.lookup,
            monotone=options.monotone,
        )

    return fit_table


def _held_out(
    samples: RankedSamples, fit_table: FitTable, n_bins: int
) -> Iterator[tuple[BinIndex, Judged]]:
    """Yield each fold's positions, judged by a table fitted on all other folds."""
    for fitted, held_out in splits(samples.folds):
        table = fit_table(samples.uncertainty[fitted], samples.hits[fitted], n_bins)
        yield (
            held_out,
            judge_table(table, samples.uncertainty[held_out], samples.hits[held_out]),
        )


def _choose(
    samples: RankedSamples, fit_table: FitTable, options: FitOptions
) -> tuple[tuple[BinCandidate, ...], int]:
    """Return the numbers of bins that were tried, and the one to use."""
    asked = candidate_bins(len(samples.hits)) if options.bins == "auto" else (options.bins,)
    tried, losses = [], []
    for n_bins in asked:
        judged = [fold for _, fold in _held_out(samples, fit_table, n_bins)]
        nll = [SCORES["nll"].compute(fold) for fold in judged]
        ece = [SCORES["ece"].compute(fold) for fold in judged]
        losses.append([np.inf if value is None else value for value in nll])
        tried.append(BinCandidate(n_bins, *_summary(nll), _summary(ece)[0]))
    return tuple(tried), choose_bins(asked, np.array(losses, dtype=np.float64))


def _summary(values: list[float | None]) -> tuple[float | None, float | None]:
    defined = [value for value in values if value is not None]
    return mean_and_std(np.array(defined, dtype=np.float64))


def _cross_validate(
    samples: RankedSamples, fit_table: FitTable, table: BinTable
) -> dict[str, FoldScore]:
    """Score every fold, and all out-of-fold probabilities together."""
    by_fold = []
    pooled = judge_table(table, samples.uncertainty, samples.hits)
    out_of_fold = np.full(len(samples.hits), np.nan)
    for held_out, judged in _held_out(samples, fit_table, table.requested_bins):
        by_fold.append(judge(judged))
        out_of_fold[held_out] = judged.probability
    if not by_fold:
        return fold_scores([], dict.fromkeys(applicable(has_bins=True)))
    return fold_scores(
        by_fold, pooled_scores(replace(pooled, probability=out_of_fold), learned=True)
    )

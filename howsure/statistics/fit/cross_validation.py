"""Cross-validated scores, and tables chosen and scored by them."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeAlias

import numpy as np

from howsure.statistics.arrays import BinIndex, Floats, Hits, Uncertainty
from howsure.statistics.bins.design import ALIKE, SampleDesign
from howsure.statistics.bins.edges import quantile_edges
from howsure.statistics.bins.fit import BinCandidate, candidate_bins, choose_bins, fit_bin_table
from howsure.statistics.bins.table import BinTable
from howsure.statistics.effective import LEAST_EFFECTIVE, check_effective
from howsure.statistics.fit.event_samples import ALL, EventInput, Rows
from howsure.statistics.fit.options import FitOptions
from howsure.statistics.ranking import merge_underflow
from howsure.statistics.records.records import Records
from howsure.statistics.scores import SCORES, Predictions, applicable, compute_scores

# Fits to the samples at some positions, and returns a function that predicts those at others.
Fit: TypeAlias = Callable[[BinIndex], Callable[[BinIndex], Predictions]]


@dataclass(frozen=True)
class FoldScore:
    """A score over the folds of cross-validation.

    Attributes
    ----------
    mean, std : float or None
        Mean and sample standard deviation (divisor ``n - 1``) over the folds with a defined score;
        None if there are too few.
    folds : int
        Number of folds with a defined score.
    pooled : float or None
        The score of all out-of-fold probabilities together; None if undefined (`pooled_scores`).
    by_fold : tuple of float or None
        The score of each fold, for paired comparisons.
    """

    mean: float | None
    std: float | None
    folds: int
    pooled: float | None
    by_fold: tuple[float | None, ...] = ()


@dataclass(frozen=True, eq=False, kw_only=True)
class Scored:
    """Scores of a method that predicts probabilities.

    Attributes
    ----------
    scores : dict of str to FoldScore
        Cross-validated. The pooled ``eor`` is that of the table fitted to all samples.
    evaluation : dict of str to float or None, optional
        On the evaluation set, for the fit to the whole calibration set.
    """

    scores: dict[str, FoldScore]
    evaluation: dict[str, float | None] | None = None


def cross_validate(
    fit: Fit, folds: BinIndex, whole: Predictions, *, learned: bool = True
) -> dict[str, FoldScore]:
    """Score every fold, and all out-of-fold probabilities together.

    Parameters
    ----------
    fit : callable
        ``fit(rows)`` uses the samples at ``rows`` and returns ``predict(rows)``.
    folds : ndarray of int64, shape (n_samples,)
    whole : Predictions
        All samples, predicted by a fit to all of them.
    learned : bool
        Whether the fit uses hits.
    """
    by_fold = []
    probability, uncertainty = np.empty((2, len(folds)))
    for held_out, judged in predict_folds(fit, folds):
        by_fold.append(compute_scores(judged))
        probability[held_out] = judged.probability
        uncertainty[held_out] = judged.uncertainty
    if not by_fold:
        return fold_scores([], dict.fromkeys(applicable(has_bins=whole.bins is not None)))
    pooled = replace(whole, probability=probability, uncertainty=uncertainty)
    return fold_scores(by_fold, pooled_scores(pooled, learned=learned))


def predict_folds(fit: Fit, folds: BinIndex) -> Iterator[tuple[BinIndex, Predictions]]:
    """Yield the positions of each fold, predicted by a fit to all other folds."""
    for fitted, held_out in splits(folds):
        yield held_out, fit(fitted)(held_out)


def splits(folds: BinIndex) -> Iterator[tuple[BinIndex, BinIndex]]:
    """Yield the positions to fit on and to score on, one pair per fold.

    A single fold yields nothing, because no samples are left for the fit.
    """
    n_folds = int(folds.max(initial=0)) + 1
    for fold in range(n_folds) if n_folds > 1 else ():
        held_out = folds == fold
        yield np.flatnonzero(~held_out), np.flatnonzero(held_out)


def pooled_scores(judged: Predictions, *, learned: bool) -> dict[str, float | None]:
    """Return the scores of all out-of-fold probabilities together.

    If they were ``learned``, scores that group samples are None. The probability of a bin in one
    fold is its hit rate in the other folds, so its mean over folds equals its overall hit rate, and
    the bin looks calibrated even if every fold is far off. A smooth curve is no exception, though
    less so: its fits to other folds miss in opposite directions too, and these errors cancel.
    """
    return {
        name: None if learned and SCORES[name].groups_samples else value
        for name, value in compute_scores(judged).items()
    }


def fold_scores(
    by_fold: Sequence[Mapping[str, float | None]], pooled: Mapping[str, float | None]
) -> dict[str, FoldScore]:
    """Summarise each score named in ``pooled`` over the folds where it is defined."""
    summaries = {}
    for name, value in pooled.items():
        found = tuple(scores[name] for scores in by_fold)
        mean, std = mean_and_std(found)
        summaries[name] = FoldScore(
            mean, std, sum(score is not None for score in found), value, found
        )
    return summaries


def mean_and_std(values: Sequence[float | None] | Floats) -> tuple[float | None, float | None]:
    """Return mean and sample standard deviation; None with fewer than one and two values."""
    defined = np.array([value for value in values if value is not None], dtype=np.float64)
    mean = float(np.mean(defined)) if defined.size else None
    std = float(np.std(defined, ddof=1)) if defined.size > 1 else None
    return mean, std


Ranking: TypeAlias = Callable[[Records], Uncertainty]


@dataclass(frozen=True, eq=False, kw_only=True)
class ScoredTable(Scored):
    """A table fitted on all samples, with its scores.

    Attributes
    ----------
    table : BinTable
    quantile_bins : int
        Bins before any were pooled: fewer than requested where equal values share a bin.
    candidates : tuple of BinCandidate
        The numbers of bins tried, ascending.
    """

    table: BinTable
    quantile_bins: int
    candidates: tuple[BinCandidate, ...]


def fit_scored_table(
    event: EventInput,
    ranking: Ranking,
    measure: str = "",
    options: FitOptions | None = None,
    *,
    may_serve: bool = True,
) -> ScoredTable:
    """Choose the number of bins by their own loss, fit the table and score it.

    Parameters
    ----------
    event : EventInput
    ranking : callable
        Returns the uncertainty of the samples of some records.
    measure : str
        Its name.
    options : FitOptions, optional
        Replace the options of the event.
    may_serve : bool
        Whether predictions may use the table, so that each bin must be worth enough samples.
    """
    options = event.options if options is None else options
    uncertainty = ranking(event.samples.records)
    # Sorting all samples once makes sorting each fold cheap.
    order = np.argsort(uncertainty, kind="stable")
    uncertainty, hits = uncertainty[order], event.samples.hits[order]
    folds = event.folds[order]
    design, least = event.samples.design.take(order), float(uncertainty[0])

    def table_of(n_bins: int, options: FitOptions, rows: Rows = ALL) -> BinTable:
        return fit_bin_table(
            uncertainty[rows],
            hits[rows],
            n_bins=n_bins,
            measure=measure,
            design=design.take(rows),
            least=least,
            **options.of_table,
        )

    def judge(table: BinTable, rows: Rows = ALL) -> Predictions:
        return predict_with_table(table, uncertainty[rows], hits[rows], design.take(rows))

    def with_bins(n_bins: int, options: FitOptions) -> Fit:
        return lambda rows: partial(judge, table_of(n_bins, options, rows))

    def is_worth_enough(n_bins: int) -> bool:
        effective = table_of(n_bins, trial).effective
        return n_bins == 1 or effective is None or effective.counts.min() >= LEAST_EFFECTIVE

    # A curve does not depend on the bins.
    trial = options if options.lookup != "smooth" else replace(options, lookup="step")
    sizes = candidate_bins(len(hits)) if options.bins == "auto" else (options.bins,)
    if options.bins == "auto" and not design.is_plain:
        sizes = tuple(filter(is_worth_enough, sizes))
    tried = [_try_bins(n_bins, with_bins(n_bins, trial), folds) for n_bins in sizes]
    candidates = tuple(candidate for candidate, _ in tried)
    n_bins = choose_bins([c.n_bins for c in candidates], np.array([nll for _, nll in tried]))
    table = table_of(n_bins, options)
    if may_serve and table.effective is not None:
        check_effective(table.effective, table.counts, measure=measure, design=design)
    scores = cross_validate(with_bins(n_bins, options), folds, judge(table))
    evaluation = event.evaluation
    return ScoredTable(
        table=table,
        quantile_bins=len(quantile_edges(uncertainty, n_bins, design)) - 1,
        scores=scores,
        evaluation=None
        if evaluation is None
        else compute_scores(
            predict_with_table(
                table, ranking(evaluation.records), evaluation.hits, evaluation.design
            )
        ),
        candidates=candidates,
    )


def by_column(name: str) -> Ranking:
    """Rank samples by a column of their records."""
    return lambda records: records.uncertainty[name]


def predict_with_table(
    table: BinTable, uncertainty: Uncertainty, hits: Hits, design: SampleDesign = ALIKE
) -> Predictions:
    """Return the probabilities of a table for samples whose hits are known.

    Values below float32's normal range rank as equal, because they share a bin.
    """
    found = table.look_up(uncertainty)
    return Predictions(
        uncertainty=merge_underflow(uncertainty),
        hits=hits,
        probability=found.probability,
        bins=found.bin,
        table=table,
        design=design,
    )


def _try_bins(n_bins: int, fit: Fit, folds: BinIndex) -> tuple[BinCandidate, list[float]]:
    """Return a candidate, and its negative log-likelihood in each fold."""
    judged = [fold for _, fold in predict_folds(fit, folds)]
    nll, ece = ([SCORES[name].compute(fold) for fold in judged] for name in ("nll", "ece"))
    candidate = BinCandidate(n_bins, *mean_and_std(nll), mean_and_std(ece)[0])
    return candidate, [np.inf if value is None else value for value in nll]

"""Scores on data that was not used for fitting."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from service.core.arrays import BinIndex, Floats
from service.core.scores import SCORES, Judged, judge


@dataclass(frozen=True)
class FoldScore:
    """A score over the folds of cross-validation.

    Attributes
    ----------
    mean, std : float or None
        Mean and sample standard deviation (divisor one less) over the folds that define the
        score; None where too few do.
    folds : int
        How many folds define it.
    pooled : float or None
        The score of all out-of-fold probabilities together; None where they do not define it
        (`pooled_scores`).
    by_fold : tuple of float or None
        The score of each fold, so that two can be compared pair by pair.
    """

    mean: float | None
    std: float | None
    folds: int
    pooled: float | None
    by_fold: tuple[float | None, ...] = ()


def splits(folds: BinIndex) -> Iterator[tuple[BinIndex, BinIndex]]:
    """Yield the positions to fit on and to judge on, one pair per fold.

    A single fold leaves nothing to fit on, and yields nothing.
    """
    n_folds = int(folds.max(initial=0)) + 1
    for fold in range(n_folds) if n_folds > 1 else ():
        held_out = folds == fold
        yield np.flatnonzero(~held_out), np.flatnonzero(held_out)


def pooled_scores(judged: Judged, *, learned: bool) -> dict[str, float | None]:
    """Return the scores of all out-of-fold probabilities together.

    Where they were ``learned``, scores that group samples are None. What a bin says in one fold is
    its hit rate in the others, so its mean over the folds is its hit rate over all: the bin looks
    calibrated however far each fold is off.
    """
    return {
        name: None if learned and SCORES[name].groups_samples else value
        for name, value in judge(judged).items()
    }


def fold_scores(
    by_fold: Sequence[Mapping[str, float | None]], pooled: Mapping[str, float | None]
) -> dict[str, FoldScore]:
    """Summarise each score named in ``pooled`` over folds, leaving out those without it."""
    summaries = {}
    for name, value in pooled.items():
        found = [scores[name] for scores in by_fold]
        defined = np.array([score for score in found if score is not None], dtype=np.float64)
        mean, std = mean_and_std(defined)
        summaries[name] = FoldScore(mean, std, len(defined), value, tuple(found))
    return summaries


def mean_and_std(values: Floats) -> tuple[float | None, float | None]:
    """Return mean and sample standard deviation, None for want of one and of two values."""
    mean = float(np.mean(values)) if values.size else None
    std = float(np.std(values, ddof=1)) if values.size > 1 else None
    return mean, std

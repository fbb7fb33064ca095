"""The scores, by name."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from math import isfinite

from howsure.statistics.scores.binned_error import (
    aece,
    amce,
    debiased_l2,
    ece,
    equal_mass_ece,
    equal_range_ece,
    equal_range_mce,
    mce,
)
from howsure.statistics.scores.information import conditional_entropy, eor
from howsure.statistics.scores.predictions import Predictions
from howsure.statistics.scores.proper import (
    brier,
    brier_calibration_error,
    brier_resolution,
    brier_uncertainty,
    nll,
    nll_calibration_error,
    nll_resolution,
    nll_uncertainty,
)
from howsure.statistics.scores.ranking import augrc, aupr, aurc, e_aurc, judged_auroc
from howsure.statistics.scores.smooth_error import smooth_ece

__all__ = ["SCORES", "Predictions", "Score", "applicable", "compute_scores"]


@dataclass(frozen=True)
class Score:
    """A number that compares probabilities with hits; its function documents the convention.

    Attributes
    ----------
    name : str
        Its name everywhere: reports, tables, JSON.
    compute : callable
        From `Predictions` with at least one sample; None, NaN or infinite if undefined for them.
    larger_is_better : bool or None
        None for a property of the data that does not depend on the probabilities.
    groups_samples : bool
        Whether it compares means over groups of samples. Such a score cannot rate pooled
        out-of-fold probabilities: over all folds, those of a bin average to the hit rate of the
        bin, so calibration looks perfect.
    needs_bins : bool
        Whether it needs bins. Baselines have none.
    """

    name: str
    compute: Callable[[Predictions], float | None]
    larger_is_better: bool | None = False
    groups_samples: bool = False
    needs_bins: bool = False


_of_groups = partial(Score, groups_samples=True)
_of_bins = partial(Score, groups_samples=True, needs_bins=True)

SCORES: dict[str, Score] = {
    score.name: score
    for score in (
        Score("brier", brier),
        Score("brier_uncertainty", brier_uncertainty, larger_is_better=None, needs_bins=True),
        _of_bins("brier_resolution", brier_resolution, larger_is_better=True),
        _of_bins("brier_calibration_error", brier_calibration_error),
        Score("nll", nll),
        Score("nll_uncertainty", nll_uncertainty, larger_is_better=None, needs_bins=True),
        _of_bins("nll_resolution", nll_resolution, larger_is_better=True),
        _of_bins("nll_calibration_error", nll_calibration_error),
        _of_bins("ece", ece),
        _of_bins("mce", mce),
        _of_groups("ece_10", partial(equal_range_ece, n_bins=10)),
        _of_groups("ece_15", partial(equal_range_ece, n_bins=15)),
        _of_groups("mce_10", partial(equal_range_mce, n_bins=10)),
        _of_groups("mce_15", partial(equal_range_mce, n_bins=15)),
        _of_groups("ece_equal_mass", equal_mass_ece),
        _of_groups("l2_debiased", debiased_l2),
        _of_groups("aece", aece),
        _of_groups("amce", amce),
        _of_groups("smooth_ece", smooth_ece),
        Score("eor", eor, larger_is_better=True, needs_bins=True),
        _of_bins("conditional_entropy", conditional_entropy),
        Score("auroc", judged_auroc, larger_is_better=True),
        Score("aupr", aupr, larger_is_better=True),
        Score("aurc", aurc),
        Score("e_aurc", e_aurc),
        Score("augrc", augrc),
    )
}


def compute_scores(judged: Predictions) -> dict[str, float | None]:
    """Return every applicable score; None if undefined for these samples.

    Without bins, scores that need them are left out.
    """
    names = applicable(has_bins=judged.bins is not None)
    if judged.n_samples == 0:
        return dict.fromkeys(names)
    values = {name: SCORES[name].compute(judged) for name in names}
    return {
        name: None if value is None or not isfinite(value) else value
        for name, value in values.items()
    }


def applicable(*, has_bins: bool) -> tuple[str, ...]:
    """Return the names of the scores for samples with or without bins."""
    return tuple(name for name, score in SCORES.items() if has_bins or not score.needs_bins)

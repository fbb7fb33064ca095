"""The scores, by name."""

from service.core.scores import (
    adaptive,
    aupr,
    aurc,
    auroc,
    brier,
    conditional_entropy,
    ece,
    eor,
    equal_mass,
    equal_range,
    nll,
    smooth_ece,
)
from service.core.scores.judged import Judged
from service.core.scores.score import Score

__all__ = ["SCORES", "Judged", "Score", "applicable", "judge"]

SCORES: dict[str, Score] = {
    score.name: score
    for score in (
        *brier.SCORES,
        *nll.SCORES,
        *ece.SCORES,
        *equal_range.SCORES,
        *equal_mass.SCORES,
        *adaptive.SCORES,
        *smooth_ece.SCORES,
        *eor.SCORES,
        *conditional_entropy.SCORES,
        *auroc.SCORES,
        *aupr.SCORES,
        *aurc.SCORES,
    )
}


def judge(judged: Judged) -> dict[str, float | None]:
    """Return every score that applies; None where the samples cannot define it.

    Scores that need bins are left out where there are none.
    """
    names = applicable(has_bins=judged.bins is not None)
    if judged.n_samples == 0:
        return dict.fromkeys(names)
    return {name: SCORES[name].compute(judged) for name in names}


def applicable(*, has_bins: bool) -> tuple[str, ...]:
    """Return the names of the scores that samples with, or without, bins can have."""
    return tuple(name for name, score in SCORES.items() if has_bins or not score.needs_bins)

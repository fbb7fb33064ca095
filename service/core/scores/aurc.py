"""Areas under the risk-coverage curve."""

import numpy as np

from service.core.arrays import Floats
from service.core.scores.judged import Judged
from service.core.scores.score import Score
from service.core.scores.tied_blocks import TiedBlocks


def selective_risks(blocks: TiedBlocks) -> Floats:
    """Return the risk among the ``j`` most certain samples, for ``j = 1 … n``.

    Samples of equal uncertainty share their average: each counts as the error rate of its block,
    which is the mean over all orders of the tied.

    Returns
    -------
    ndarray of float64, shape (n_samples,)
    """
    n_samples = int(blocks.counts.sum())
    before = np.cumsum(blocks.counts) - blocks.counts
    errors_before = np.cumsum(blocks.errors) - blocks.errors
    accepted = np.arange(1, n_samples + 1, dtype=np.float64)
    into_block = accepted - np.repeat(before, blocks.counts)
    rate = np.repeat(blocks.errors / blocks.counts, blocks.counts)
    return np.asarray(
        (np.repeat(errors_before, blocks.counts) + into_block * rate) / accepted, dtype=np.float64
    )


def aurc(judged: Judged) -> float:
    """Return the mean of the ``n`` selective risks: Ding et al., section 4.1."""
    return float(np.mean(selective_risks(judged.blocks)))


def e_aurc(judged: Judged) -> float:
    """Return ``aurc`` less that of the ranking with every hit first: Geifman et al. 2019.

    The oracle's by the same sum over ranks, where they take an integral in its place. 0 for a
    ranking that puts all hits before all errors.
    """
    n_samples, n_hits = judged.n_samples, int(np.count_nonzero(judged.hits))
    accepted = np.arange(n_hits + 1, n_samples + 1, dtype=np.float64)
    oracle = float(np.sum((accepted - n_hits) / accepted)) / n_samples
    return max(aurc(judged) - oracle, 0.0)


def augrc(judged: Judged) -> float:
    """Return the area under the generalised risk-coverage curve: Traub et al. 2024, eq. (6).

    Errors that were accepted, as a share of *all* samples, against coverage, from (0, 0), with
    straight lines across the tied: ``(1 - AUROC) a (1 - a) + (1 - a)^2 / 2``, with ``a`` the
    accuracy.
    """
    errors, counts = judged.blocks.errors, judged.blocks.counts
    before = np.cumsum(errors) - errors
    return float(counts @ (before + errors / 2.0) / judged.n_samples / judged.n_samples)


SCORES = (
    Score(
        "aurc",
        "mean of the n risks among the 1, 2, … n most certain samples; ties share their average",
        aurc,
    ),
    Score(
        "e_aurc",
        "aurc less that of the same samples with every hit ranked first",
        e_aurc,
    ),
    Score(
        "augrc",
        "area under accepted errors / n against coverage, from (0, 0), lines across the tied",
        augrc,
    ),
)

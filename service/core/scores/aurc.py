"""Area under the risk-coverage curve."""

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


SCORES = (
    Score(
        "aurc",
        "mean of the n risks among the 1, 2, … n most certain samples; ties share their average",
        aurc,
    ),
)

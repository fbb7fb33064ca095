"""Area under the ROC curve of finding errors by uncertainty."""

import numpy as np

from service.core.arrays import Counts, Floats
from service.core.scores.judged import Judged
from service.core.scores.score import Score


def auroc(hits: Counts | Floats, errors: Counts | Floats) -> float | None:
    """Return the chance that an error ranks as less certain than a hit; a tie counts half.

    Parameters
    ----------
    hits, errors : ndarray of int64 or float64, shape (n_blocks,)
        Hits and errors, in number or in weight, of each block of equal uncertainty, most certain
        first.

    Returns
    -------
    float or None
        In [0, 1]; None without a hit or without an error.
    """
    n_hits, n_errors = float(hits.sum()), float(errors.sum())
    if n_hits <= 0.0 or n_errors <= 0.0:
        return None
    more_certain = np.cumsum(hits) - hits
    pairs = errors @ (more_certain + 0.5 * hits)
    return float(pairs / n_hits / n_errors)


def _compute(judged: Judged) -> float | None:
    blocks = judged.blocks
    return auroc(blocks.counts - blocks.errors, blocks.errors)


SCORES = (
    Score(
        "auroc",
        "area under the ROC curve of finding errors by uncertainty; a tie counts half",
        _compute,
        larger_is_better=True,
    ),
)

"""Area under the precision-recall curve of finding errors by uncertainty."""

import numpy as np

from service.core.scores.judged import Judged
from service.core.scores.score import Score


def aupr(judged: Judged) -> float | None:
    """Return the average precision, errors as the positive class: Hendrycks & Gimpel 2017.

    The mean over errors of the share of errors among the samples at least as uncertain; samples of
    equal uncertainty are taken together. No line is drawn between points, which would flatter
    (Davis & Goadrich 2006). None without an error. Chance scores the error rate.
    """
    errors = judged.blocks.errors[::-1]
    total = int(errors.sum())
    if total == 0:
        return None
    precision = np.cumsum(errors) / np.cumsum(judged.blocks.counts[::-1])
    return float(errors @ precision / total)


SCORES = (
    Score(
        "aupr",
        "average precision of finding errors by uncertainty; the tied are taken together",
        aupr,
        larger_is_better=True,
    ),
)

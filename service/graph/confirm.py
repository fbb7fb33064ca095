"""Whether logits behind an output really make it, by the values of a few rows."""

import numpy as np
from numpy.typing import NDArray

from service.graph.softmax import Hook

# A float16 softmax is off by 1e-3 of each value; a wrong axis or order by far more.
RELATIVE_TOLERANCE = 1e-2
ABSOLUTE_TOLERANCE = 1e-5

Floats = NDArray[np.float64]


def is_confirmed(hook: Hook, scores: Floats, hooked: NDArray[np.floating]) -> bool:
    """Return whether the hooked logits give the output's distribution on the rows tried."""
    if hooked.ndim == 0 or len(hooked) != len(scores):
        return False
    logits = np.asarray(hooked, dtype=np.float64).reshape(len(scores), -1)
    if hook.positive_column is not None:
        if logits.shape[1] != hook.positive_column + 1:
            return False
        positive = logits[:, hook.positive_column]
        logits = np.column_stack([np.zeros_like(positive), positive])
    expected = _distribution(scores)
    if expected.shape != logits.shape:
        return False
    # Rows that are not finite prove nothing, either way.
    finite = np.isfinite(expected).all(axis=1)
    return bool(finite.any()) and np.allclose(
        _softmax(logits[finite]),
        expected[finite],
        rtol=RELATIVE_TOLERANCE,
        atol=ABSOLUTE_TOLERANCE,
    )


def _distribution(scores: Floats) -> Floats:
    """Return the class probabilities, if the scores are a sigmoid's, softmax's or its logarithm."""
    if scores.shape[1] == 1:
        return np.column_stack([1 - scores[:, 0], scores[:, 0]])
    with np.errstate(over="ignore"):
        return scores if np.nanmin(scores) >= 0 else np.exp(scores)


def _softmax(logits: Floats) -> Floats:
    with np.errstate(invalid="ignore"):
        exponentials = np.exp(logits - logits.max(axis=1, keepdims=True))
        return np.asarray(exponentials / exponentials.sum(axis=1, keepdims=True))

"""The scores of classes as logits or logarithms of probabilities."""

import numpy as np

from service.core.arrays import Floats
from service.graph.output import Kind
from service.runner.frames import Array


def class_logs(scores: Array, kind: Kind) -> Floats:
    """Return logits as they are, and probabilities as their logarithms, float64 (n, n_classes)."""
    wide: Floats = scores.astype(np.float64)
    if kind == "logits":
        return wide
    with np.errstate(divide="ignore"):  # log 0 is -inf: a class that is ruled out
        return np.asarray(np.log(np.maximum(wide, 0.0)))  # rounding may leave a -1e-9


def log_probabilities(scores: Array, kind: Kind) -> Floats:
    """Return the logarithms of the classes' probabilities, which sum to one, float64.

    A row that is not finite gives NaN.
    """
    logs = class_logs(scores, kind)
    with np.errstate(invalid="ignore", over="ignore"):
        relative = logs - logs.max(axis=1, keepdims=True)
        return np.asarray(relative - np.log(np.exp(relative).sum(axis=1, keepdims=True)))

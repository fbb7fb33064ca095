"""Probabilities of the classes, by that of the first and the shares of the others."""

import numpy as np
from numpy.typing import NDArray

from howsure.statistics.arrays import Floats, Rates
from howsure.statistics.label_model.model import LabelOdds


def class_shares(
    top_probabilities: NDArray[np.float32], odds: LabelOdds | None, n_classes: int
) -> Floats:
    """Return P(class | not the first) of the recorded classes, shape (n_samples, m).

    It is that of the model of the labels, if an event is served by it, and otherwise in proportion
    to the model's own softmax, ``top_probabilities``. Classes that are not recorded have a share,
    too. The first is 1.
    """
    if odds is not None:
        return odds.shares()
    wide = top_probabilities.astype(np.float64)
    rest = np.add.reduce(wide[:, 1:], axis=1)
    if wide.shape[1] < n_classes:
        rest = np.maximum(rest, 1.0 - wide[:, 0])
    shares = np.asarray(wide / np.where(rest > 0.0, rest, np.inf)[:, np.newaxis])
    shares[:, 0] = 1.0
    return shares


def class_probability_array(first: Rates, shares: Floats) -> Rates:
    """Return the probabilities of the classes, where that of the first is served."""
    probabilities = np.asarray((1.0 - first)[:, np.newaxis] * shares)
    probabilities[:, 0] = first
    return probabilities

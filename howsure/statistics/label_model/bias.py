"""Whether the model names some classes too often: answers that the corrections would change."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from howsure.statistics.paired_hits import PairedHits
from howsure.statistics.records.records import Records
from howsure.statistics.softmax import BINARY

LEVEL, LEAST_GAIN = 0.01, 0.005


@dataclass(frozen=True)
class ClassBias:
    """More answers would be right with the corrections of the classes.

    Attributes
    ----------
    hits : PairedHits
        Before: of the model's answers. After: of the classes that are most probable with
        corrections learned from other samples.
    answer, label : int
        What the model answers most often where only the corrections are right, and the label there.
    """

    hits: PairedHits
    answer: int
    label: int


def class_bias(records: Records, corrected: NDArray[np.integer]) -> ClassBias | None:
    """Return the bias of the classes, if its correction makes clearly more answers right.

    That is half a point of accuracy or more, by the sign test at 1 %, which is of independent
    samples. A threshold for two classes other than 1/2 is a choice and no bias.

    Parameters
    ----------
    records : Records
    corrected : ndarray of int, shape (n_samples,)
        The most probable class after the corrections.
    """
    top, n_recorded = records.top_classes[:, 0], records.top_classes.shape[1]
    is_chosen = n_recorded == BINARY and (records.top_log_odds[:, 0] < 0.0).any()
    hits = PairedHits.of(records.hits(1), corrected == records.label)
    if not records.design.is_plain or is_chosen or hits.gain < LEAST_GAIN or hits.p_value > LEVEL:
        return None
    gained = (corrected == records.label) & (top != records.label)
    pairs, counts = np.unique(
        np.stack([top, corrected], axis=1)[gained], axis=0, return_counts=True
    )
    answer, label = pairs[counts.argmax()].tolist()
    return ClassBias(hits, answer, label)

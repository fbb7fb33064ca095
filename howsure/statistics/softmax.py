"""The softmax of a block of scores, with ranked classes; ties go to the lower class index."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from howsure.statistics.arrays import NONE_OF_THESE, Classes, Floats, Labels, Logits

BINARY = 2  # classes


def least_probability(threshold: float) -> float:
    """Return the least P(class 1) that reaches the threshold, but for rounding to float32."""
    return threshold * (1.0 - 2.0**-22)


def decision_scores(scores: Floats, threshold: float | None) -> Floats:
    """Return scores whose largest is that of the predicted class.

    They are the scores themselves without a threshold. With one, class 1 of two is predicted where
    its probability reaches the threshold, so its log-odds are lowered by those of the threshold.

    Parameters
    ----------
    scores : ndarray of float64, shape (n_samples, n_classes)
        Logits or ``log p``.
    threshold : float, optional
        In (0, 1), of two classes only.
    """
    if threshold is None:
        return scores
    least = least_probability(threshold)
    return np.asarray(scores - [0.0, np.log(least) - np.log1p(-least)])


def top_classes(scores: Floats, n_top: int) -> Classes:
    """Return the ``n_top`` classes of highest score, best first.

    Equal scores rank by class index, also at the boundary. A plain ``argpartition`` keeps arbitrary
    classes among those tied there, so the set is chosen by value first and then, among tied
    classes, by index.

    Parameters
    ----------
    scores : ndarray of float64, shape (n_samples, n_classes)
        Free of NaN; ``-inf`` is allowed.
    n_top : int
        ``1 <= n_top <= n_classes``.

    Returns
    -------
    ndarray of int64, shape (n_samples, n_top)
    """
    n_samples, n_classes = scores.shape
    boundary = n_classes - n_top
    least = np.partition(scores, boundary, axis=1)[:, boundary, np.newaxis]
    chosen = scores >= least
    crowded = np.flatnonzero(chosen.sum(axis=1) > n_top)
    if crowded.size:
        tied = scores[crowded] == least[crowded]
        above = chosen[crowded] & ~tied
        places = n_top - above.sum(axis=1, keepdims=True)
        chosen[crowded] = above | (tied & (np.cumsum(tied, axis=1) <= places))
    # nonzero yields ascending classes, so the stable sort leaves ties in class order.
    candidates = np.nonzero(chosen)[1].reshape(n_samples, n_top)
    order = np.argsort(-np.take_along_axis(scores, candidates, axis=1), axis=1, kind="stable")
    return np.take_along_axis(candidates, order, axis=1).astype(np.int64, copy=False)


def values_of_labels(values: Floats, labels: Labels) -> Floats:
    """Return the value of each label's class, shape (n_samples,); -inf for `NONE_OF_THESE`."""
    of_label = np.take_along_axis(values, np.maximum(labels, 0)[:, np.newaxis], axis=1)[:, 0]
    return np.where(labels == NONE_OF_THESE, -np.inf, of_label)


def label_ranks(scores: Floats, labels: Labels) -> Labels:
    """Return the number of classes ranked above the label: 0 if the label is the prediction.

    `NONE_OF_THESE` ranks below all classes.

    Parameters
    ----------
    scores : ndarray of float64, shape (n_samples, n_classes)
    labels : ndarray of int64, shape (n_samples,)

    Returns
    -------
    ndarray of int64, shape (n_samples,)
        In ``[0, n_classes]``; the Top-k event holds where it is below ``k``.
    """
    n_classes = scores.shape[1]
    label_scores = values_of_labels(scores, labels)[:, np.newaxis]
    places = np.where(labels == NONE_OF_THESE, n_classes, labels)
    before = np.arange(n_classes) < places[:, np.newaxis]
    above = (scores > label_scores) | ((scores == label_scores) & before)
    ranks: Labels = above.sum(axis=1, dtype=np.int64)
    return ranks


# All classes are recorded if there are few, otherwise the top ones.
MOST_COMPLETE, LEAST_TOP = 32, 10


@dataclass(frozen=True, eq=False)
class RankedScores:
    """A block of logits relative to that of the predicted class, split into heads and tails.

    The classes are ranked by `decision_scores`: the first is the predicted one. Without a decision
    threshold it has the largest logit. With ``z`` the logits and ``e_i = exp(z_i - z_(1))``, the
    softmax is ``e_i / total``:

    Attributes
    ----------
    top_classes : ndarray of int64, shape (n_samples, m)
        Best first, ties to the lower index.
    largest : ndarray of float64, shape (n_samples,)
        ``z_(1)``; meaningless for ``log p``, which differs from the logits by a constant.
    relative : ndarray of float64, shape (n_samples, n_classes)
        ``z - z_(1)``: at most 0 without a threshold; ``-inf`` for an excluded class.
    weights : ndarray of float64, shape (n_samples, n_classes)
        ``e``: 1 for the top class.
    heads, tails : ndarray of float64, shape (n_samples, m)
        Column ``k - 1`` holds the sum of ``e`` over the ``k`` top classes, and over all others.
        A tail is summed from its own terms, never as a difference, so its relative error is that of
        a sum of positive numbers.
    """

    top_classes: Classes
    largest: Floats
    relative: Floats
    weights: Floats
    heads: Floats
    tails: Floats

    @property
    def total(self) -> Floats:
        """Sum of ``e`` over all classes, shape (n_samples,): at least 1."""
        return 1.0 + self.tails[:, 0]

    @property
    def top_relative(self) -> Floats:
        """``z_(i) - z_(1)`` of the top classes, shape (n_samples, m)."""
        return np.take_along_axis(self.relative, self.top_classes, axis=1)


def n_recorded_classes(n_classes: int, top_k: Sequence[int]) -> int:
    """Return ``m``, the number of top classes to keep: all up to 32 classes, otherwise ten or more.

    Raises
    ------
    ValueError
        If ``top_k`` is empty, repeats a value, or holds a ``k`` outside ``1 <= k < n_classes``.
        With ``k = n_classes`` the event is certain.
    """
    if not top_k:
        raise ValueError("top_k must name at least one event")
    if len(set(top_k)) != len(top_k):
        raise ValueError(f"top_k must be distinct, not {list(top_k)}")
    for k in top_k:
        if not 1 <= k < n_classes:
            raise ValueError(f"top_k must lie in [1, {n_classes - 1}], not {k}")
    return n_classes if n_classes <= MOST_COMPLETE else max(LEAST_TOP, *top_k)


def rank_scores(scores: Logits, *, n_top: int, threshold: float | None = None) -> RankedScores:
    """Rank a block of logits; ``log p`` serves as well, with ``-inf`` where ``p`` is 0.

    Parameters
    ----------
    scores : ndarray of float64, shape (n_samples, n_classes)
        As `howsure.statistics.arrays.as_scores` returns them.
    n_top : int
        Top classes to keep, ``1 <= n_top <= n_classes``.
    threshold : float, optional
        Decision threshold of two classes.
    """
    # C order, so that sums do not depend on the layout or size of the block.
    scores = np.ascontiguousarray(scores)
    top = top_classes(decision_scores(scores, threshold), n_top)
    largest = np.take_along_axis(scores, top[:, :1], axis=1)
    with np.errstate(over="ignore"):  # finite logits further apart than float64 reaches: -inf
        relative = scores - largest
    weights = np.exp(relative)
    top_weights = np.take_along_axis(weights, top, axis=1)
    np.put_along_axis(weights, top, 0.0, axis=1)
    last_tail = weights.sum(axis=1, keepdims=True)
    np.put_along_axis(weights, top, top_weights, axis=1)
    ascending = np.concatenate([last_tail, top_weights[:, :0:-1]], axis=1)
    return RankedScores(
        top_classes=top,
        largest=largest[:, 0],
        relative=relative,
        weights=weights,
        heads=np.cumsum(top_weights, axis=1),
        tails=np.cumsum(ascending, axis=1)[:, ::-1],
    )

"""Rank classes by score, ties to the lower class index."""

import numpy as np

from service.core.arrays import Classes, Floats, Labels


def top_classes(scores: Floats, n_top: int) -> Classes:
    """Return the ``n_top`` classes of highest score, best first.

    Equal scores rank by the lower class index, also at the boundary: a plain ``argpartition``
    keeps an arbitrary one of the classes tied there, so the set is chosen by value and then, for
    the surplus among the tied, by index.

    Parameters
    ----------
    scores : ndarray of float64, shape (n_samples, n_classes)
        Free of NaN; ``-inf`` is allowed.
    n_top : int
        ``1 <= n_top <= n_classes``.

    Returns
    -------
    ndarray of int64, shape (n_samples, n_top)

    Raises
    ------
    ValueError
        If ``n_top`` is out of range.
    """
    n_samples, n_classes = scores.shape
    if not 1 <= n_top <= n_classes:
        raise ValueError(f"n_top must lie in [1, {n_classes}], not {n_top}")
    boundary = n_classes - n_top
    least = np.partition(scores, boundary, axis=1)[:, boundary, np.newaxis]
    chosen = scores >= least
    crowded = np.flatnonzero(chosen.sum(axis=1) > n_top)
    if crowded.size:
        tied = scores[crowded] == least[crowded]
        above = chosen[crowded] & ~tied
        places = n_top - above.sum(axis=1, keepdims=True)
        chosen[crowded] = above | (tied & (np.cumsum(tied, axis=1) <= places))
    # nonzero walks a row by ascending class, so the stable sort leaves ties in class order.
    candidates = np.nonzero(chosen)[1].reshape(n_samples, n_top)
    order = np.argsort(-np.take_along_axis(scores, candidates, axis=1), axis=1, kind="stable")
    return np.take_along_axis(candidates, order, axis=1).astype(np.int64, copy=False)


def label_ranks(scores: Floats, labels: Labels) -> Labels:
    """Return how many classes rank above the label: 0 where the label is the prediction.

    Parameters
    ----------
    scores : ndarray of float64, shape (n_samples, n_classes)
    labels : ndarray of int64, shape (n_samples,)

    Returns
    -------
    ndarray of int64, shape (n_samples,)
        In ``[0, n_classes)``; the Top-k event holds where it is below ``k``.
    """
    label_scores = np.take_along_axis(scores, labels[:, np.newaxis], axis=1)
    before = np.arange(scores.shape[1]) < labels[:, np.newaxis]
    above = (scores > label_scores) | ((scores == label_scores) & before)
    ranks: Labels = above.sum(axis=1, dtype=np.int64)
    return ranks

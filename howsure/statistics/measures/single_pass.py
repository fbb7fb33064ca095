"""Measures of the scores that one run of the model gives."""

import numpy as np

from howsure.statistics.arrays import Floats
from howsure.statistics.bins.edges import UNDERFLOW
from howsure.statistics.softmax import RankedScores


def entropy(ranked: RankedScores, _k: int) -> Floats:
    """Return ``-sum_i p_i log p_i``, with ``0 log 0 = 0``: Finlay & Oberman, section 6.1.

    As ``log p_i = z_i - z_(1) - U_1``, it is ``U_1 + sum_i p_i (z_(1) - z_i)``: terms that are
    never negative, so nothing cancels.

    Parameters
    ----------
    ranked : RankedScores

    Returns
    -------
    ndarray of float64, shape (n_samples,)
        In nats, from 0 to ``log(n_classes)``.
    """
    # A weight of 0 may stand beside a relative logit of -inf.
    terms = np.zeros_like(ranked.weights)
    np.multiply(ranked.weights, ranked.relative, out=terms, where=ranked.weights > 0.0)
    spread: Floats = terms.sum(axis=1) / ranked.total
    return np.log1p(ranked.tails[:, 0]) - spread


def neg_log_pmax(ranked: RankedScores, _k: int) -> Floats:
    """Return ``U_1 = -log p_(1)``: Finlay & Oberman, section 6.1.

    Parameters
    ----------
    ranked : RankedScores

    Returns
    -------
    ndarray of float64, shape (n_samples,)
        In nats, from 0 to ``log(n_classes)``; at most the loss ``-log p_y``, and equal to it where
        the prediction is right.
    """
    return np.log1p(ranked.tails[:, 0])


def neg_log_topk_mass(ranked: RankedScores, k: int) -> Floats:
    """Return ``U_k = -log sum_{i <= k} p_(i)``: Finlay & Oberman, section 6.1.

    Taken from the tail, ``log1p(tail / head)``: as ``-log(1 - tiny)`` every confident sample would
    have an uncertainty of exactly zero, and the ties would ruin quantile bins.

    Parameters
    ----------
    ranked : RankedScores
    k : int
        ``1 <= k <= m``.

    Returns
    -------
    ndarray of float64, shape (n_samples,)
        In nats, from 0 to ``log(n_classes / k)``.
    """
    return np.log1p(ranked.tails[:, k - 1] / ranked.heads[:, k - 1])


def margin(ranked: RankedScores, _k: int) -> Floats:
    """Return ``1 - (p_(1) - p_(2))``, from tails: ``(1 - p_(1)) + p_(2)``.

    Parameters
    ----------
    ranked : RankedScores

    Returns
    -------
    ndarray of float64, shape (n_samples,)
        From 0 to 1.
    """
    # From the weights: as a difference of tails it would cancel where it is small beside the rest.
    second = np.take_along_axis(ranked.weights, ranked.top_classes[:, 1:2], axis=1)[:, 0]
    return (ranked.tails[:, 0] + second) / ranked.total


LARGEST = float(np.finfo(np.float32).max)


def energy(ranked: RankedScores, _k: int) -> Floats:
    """Return ``-log sum_i exp(z_i)``: Liu et al. 2020, eq. (4) at temperature 1.

    As ``-(z_(1) + U_1)``. The one measure that sees the size of the logits, which the softmax
    takes away: of probabilities, whose logits are known but for a constant, there is none.

    Parameters
    ----------
    ranked : RankedScores
        Of logits, not of ``log p``.

    Returns
    -------
    ndarray of float64, shape (n_samples,)
        Of either sign; held to float32's range.
    """
    value = -(ranked.largest + np.log1p(ranked.tails[:, 0]))
    is_tiny = np.abs(value) < UNDERFLOW  # would be -0 in float32
    return np.clip(np.where(is_tiny, 0.0, value), -LARGEST, LARGEST)

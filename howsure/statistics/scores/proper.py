"""Proper scores: the Brier score with its decomposition, and the negative log-likelihood."""

import numpy as np
from scipy.special import entr, rel_entr

from howsure.statistics.arrays import Floats, Rates
from howsure.statistics.scores.predictions import Predictions


def squared_errors(judged: Predictions) -> Floats:
    """Return ``(q - X)^2`` of each sample, shape (n_samples,)."""
    return np.square(judged.probability - judged.hits)


def brier(judged: Predictions) -> float:
    """Return the mean of ``(q - X)^2``: Oberman et al., section 5.1.

    For binned probabilities (one per bin) it equals uncertainty - resolution + calibration error.
    An interpolated table serves several probabilities in a bin, which leaves a remainder.
    """
    return judged.mean(squared_errors(judged))


def brier_uncertainty(judged: Predictions) -> float:
    """Return ``a (1 - a)``, with ``a`` the hit rate of all samples: the score of always ``a``."""
    accuracy = judged.mean(judged.hits)
    return accuracy * (1.0 - accuracy)


def brier_resolution(judged: Predictions) -> float:
    """Return ``sum_i w_i (a - p_i)^2``, with ``p_i`` the hit rate of bin i."""
    bins = judged.occupied
    return float(bins.weights @ np.square(bins.hit_rates - judged.mean(judged.hits)))


def brier_calibration_error(judged: Predictions) -> float:
    """Return ``sum_i w_i (p_i - q_i)^2``, with ``q_i`` the mean probability served in bin i."""
    bins = judged.occupied
    return float(bins.weights @ np.square(bins.hit_rates - bins.probability))


def binary_entropy(rates: Rates | float) -> Rates:
    """Return ``H(p) = -p log p - (1 - p) log(1 - p)`` in nats, 0 at 0 and 1."""
    rates = np.clip(rates, 0.0, 1.0)
    return np.asarray(entr(rates) + entr(1.0 - rates), dtype=np.float64)


def binary_divergence(rates: Rates, probability: Rates | float) -> Rates:
    """Return ``KL(p || q) = p log(p / q) + (1 - p) log((1 - p) / (1 - q))`` in nats.

    ``0 log 0 = 0``. Oberman et al., section 5.1, write the arguments the other way round; in this
    order the decomposition is exact.
    """
    probability = np.asarray(probability, dtype=np.float64)
    divergence = rel_entr(rates, probability) + rel_entr(1.0 - rates, 1.0 - probability)
    return np.asarray(divergence, dtype=np.float64)


def log_losses(judged: Predictions) -> Floats:
    """Return ``-log q`` of a hit and ``-log(1 - q)`` of a miss, nats, shape (n_samples,).

    ``q`` is clipped by ``judged.log_floor``; infinite if the outcome had probability 0.
    """
    probability = _clipped(judged.probability, judged.log_floor)
    with np.errstate(divide="ignore"):
        return -np.log(np.where(judged.hits, probability, 1.0 - probability))


def sample_losses(judged: Predictions) -> dict[str, Floats]:
    """Return ``nll`` and ``brier`` of each sample, by name."""
    return {"nll": log_losses(judged), "brier": squared_errors(judged)}


def nll(judged: Predictions) -> float | None:
    """Return the mean of ``-log q`` over hits and ``-log(1 - q)`` over misses, in nats.

    ``q`` is clipped by ``judged.log_floor``. None if infinite. For binned probabilities it equals
    uncertainty - resolution + calibration error.
    """
    mean = judged.mean(log_losses(judged))
    return mean if np.isfinite(mean) else None


def nll_uncertainty(judged: Predictions) -> float:
    """Return ``H(a)``, with ``a`` the hit rate of all samples."""
    return float(binary_entropy(judged.mean(judged.hits)))


def nll_resolution(judged: Predictions) -> float:
    """Return ``sum_i w_i KL(p_i || a)``, with ``p_i`` the hit rate of bin i."""
    bins = judged.occupied
    return float(bins.weights @ binary_divergence(bins.hit_rates, judged.mean(judged.hits)))


def nll_calibration_error(judged: Predictions) -> float | None:
    """Return ``sum_i w_i KL(p_i || q_i)``, with ``q_i`` the mean probability served in bin i."""
    bins = judged.occupied
    probability = _clipped(bins.probability, judged.log_floor)
    error = float(bins.weights @ binary_divergence(bins.hit_rates, probability))
    return error if np.isfinite(error) else None


def _clipped(probability: Rates, floor: float) -> Rates:
    return np.clip(probability, floor, 1.0 - floor)

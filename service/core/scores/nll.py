"""The negative log-likelihood of hits, and its decomposition over bins."""

import numpy as np
from scipy.special import entr, rel_entr

from service.core.arrays import Floats, Rates
from service.core.scores.judged import Judged
from service.core.scores.score import Score


def binary_entropy(rates: Rates | float) -> Rates:
    """Return ``H(p) = -p log p - (1 - p) log(1 - p)`` in nats, 0 at 0 and 1."""
    rates = np.asarray(rates, dtype=np.float64)
    return np.asarray(entr(rates) + entr(1.0 - rates), dtype=np.float64)


def binary_divergence(rates: Rates, probability: Rates | float) -> Rates:
    """Return ``KL(p || q) = p log(p / q) + (1 - p) log((1 - p) / (1 - q))`` in nats.

    ``0 log 0 = 0``. Oberman et al., section 5.1, write the arguments the other way round; in this
    order the decomposition is exact.
    """
    probability = np.asarray(probability, dtype=np.float64)
    divergence = rel_entr(rates, probability) + rel_entr(1.0 - rates, 1.0 - probability)
    return np.asarray(divergence, dtype=np.float64)


def log_losses(judged: Judged) -> Floats:
    """Return ``-log q`` of a hit and ``-log(1 - q)`` of a miss, nats, shape (n_samples,).

    ``q`` is clipped as ``judged.log_floor`` says; infinite where the truth was given no chance.
    """
    probability = _clipped(judged.probability, judged.log_floor)
    with np.errstate(divide="ignore"):
        return -np.log(np.where(judged.hits, probability, 1.0 - probability))


def nll(judged: Judged) -> float | None:
    """Return the mean of ``-log q`` over hits and ``-log(1 - q)`` over misses, in nats.

    ``q`` is clipped as ``judged.log_floor`` says. None where it is infinite. On binned
    probabilities it equals uncertainty - resolution + calibration error.
    """
    mean = float(np.mean(log_losses(judged)))
    return mean if np.isfinite(mean) else None


def nll_uncertainty(judged: Judged) -> float:
    """Return ``H(a)``, with ``a`` the hit rate of all samples."""
    return float(binary_entropy(float(np.mean(judged.hits))))


def nll_resolution(judged: Judged) -> float:
    """Return ``sum_i w_i KL(p_i || a)``, with ``p_i`` the hit rate of bin i."""
    bins = judged.occupied
    return float(bins.weights @ binary_divergence(bins.hit_rates, float(np.mean(judged.hits))))


def nll_calibration_error(judged: Judged) -> float | None:
    """Return ``sum_i w_i KL(p_i || q_i)``, with ``q_i`` the mean probability served in bin i."""
    bins = judged.occupied
    probability = _clipped(bins.probability, judged.log_floor)
    error = float(bins.weights @ binary_divergence(bins.hit_rates, probability))
    return error if np.isfinite(error) else None


def _clipped(probability: Rates, floor: float) -> Rates:
    return np.clip(probability, floor, 1.0 - floor)


SCORES = (
    Score("nll", "mean of -log q over hits and -log(1 - q) over misses, nats", nll),
    Score(
        "nll_uncertainty",
        "H(a), a the hit rate: nll = uncertainty - resolution + calibration error",
        nll_uncertainty,
        larger_is_better=None,
        needs_bins=True,
    ),
    Score(
        "nll_resolution",
        "sum of w_i KL(p_i || a) over bins, p_i the hit rate of bin i",
        nll_resolution,
        larger_is_better=True,
        groups_samples=True,
        needs_bins=True,
    ),
    Score(
        "nll_calibration_error",
        "sum of w_i KL(p_i || q_i) over bins, q_i the mean probability served in bin i",
        nll_calibration_error,
        groups_samples=True,
        needs_bins=True,
    ),
)

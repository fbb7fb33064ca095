"""Scores of the recorded classes, and how a temperature and a floor scale them."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from howsure.statistics.arrays import Floats
from howsure.statistics.learned.recorded import recorded_rest
from howsure.statistics.records.records import TEMPERATURES, Records

LEAST = 1e-37  # of a probability: float32 has little below
LOG_TINY = np.log(1e-6)


def log_sum_exp(values: Floats) -> Floats:
    """Return ``log sum_j exp(values_ij)``, shape (n_samples, 1): the same in any batch."""
    # Calls of ufuncs: one row at a time, methods of arrays would take a third longer.
    most = np.maximum.reduce(values, axis=1, keepdims=True)
    total = np.add.reduce(np.exp(values - most), axis=1, keepdims=True)
    return np.asarray(most + np.log(total))


def with_rest(values: Floats, rest: Floats) -> Floats:
    """Return the values with those of all other classes together, if there are others."""
    return np.concatenate([values, rest], axis=1) if rest.shape[1] else values


@dataclass(frozen=True, eq=False)
class ClassScores:
    """Log-probabilities of the model for the recorded classes of some samples.

    Attributes
    ----------
    classes : ndarray of int, shape (n_samples, m)
        All classes, or the top ones; the first is the predicted class.
    log_p : ndarray of float64, shape (n_samples, m)
        Of probabilities of at least 1e-37.
    n_classes : int
    """

    classes: NDArray[np.integer]
    log_p: Floats
    n_classes: int

    @classmethod
    def of(
        cls, classes: NDArray[np.integer], probabilities: NDArray[np.float32], n_classes: int
    ) -> "ClassScores":
        """Return the scores of what the head computes, which is what records hold."""
        wide = probabilities.astype(np.float64)
        return cls(classes, np.log(np.maximum(wide, LEAST)), n_classes)

    @property
    def is_complete(self) -> bool:
        """Whether all classes are recorded."""
        return bool(self.classes.shape[1] == self.n_classes)

    @property
    def rules_out(self) -> bool:
        """Whether some classes have no probability, and no class a tiny one: as by votes."""
        is_none = self.log_p <= np.log(2.0 * LEAST)
        return bool(is_none.any() and (is_none | (self.log_p >= LOG_TINY)).all())

    def scaled(self, temperature: float, floor: float, log_rest: Floats) -> tuple[Floats, Floats]:
        """Return log-probabilities proportional to ``(p + floor)^(1 / T)``.

        Parameters
        ----------
        temperature, floor : float
        log_rest : ndarray of float64, shape (n_samples, 0 or 1)
            Logarithm of the sum of ``p^(1 / T)`` over all other classes, relative to the same sum
            over the recorded ones; no column if all classes are recorded.

        Returns
        -------
        u : ndarray of float64, shape (n_samples, m)
        rest : ndarray of float64, shape (n_samples, 0 or 1)
            Of all other classes together.
        """
        rest = log_rest
        if log_rest.shape[1]:
            rest = log_rest + log_sum_exp(self.log_p / temperature)
        u = self.log_p
        if floor > 0.0:
            u = np.log(np.exp(u) + floor)
            beyond = self.n_classes - u.shape[1]
            if beyond:
                rest = np.logaddexp(rest, np.log(beyond) + np.log(floor) / temperature)
        u = u / temperature
        total = log_sum_exp(with_rest(u, rest))
        return u - total, rest - total


def recorded_scores(records: Records, n_classes: int, m: int | None = None) -> ClassScores:
    """Return the scores of the first ``m`` recorded classes, as the head computes them."""
    log_odds = records.top_log_odds[:, :1].astype(np.float64)
    log_first = -np.logaddexp(0.0, -log_odds)
    p = np.exp(records.top_logits[:, :m].astype(np.float64) + log_first).astype(np.float32)
    return ClassScores.of(records.top_classes[:, :m], p, n_classes)


def recorded_log_rest(records: Records, temperature: float, n_classes: int, m: int) -> Floats:
    """Return ``log_rest`` of `ClassScores.scaled` at one of `TEMPERATURES`."""
    if m == n_classes:
        return np.empty((records.n_samples, 0))
    index = int(np.abs(TEMPERATURES - temperature).argmin())
    return np.log(recorded_rest(records, m, index))[:, np.newaxis]

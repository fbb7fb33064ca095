"""The model of the labels: a formula from the head's outputs to a probability of each class."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from howsure.statistics.arrays import Floats, Uncertainty
from howsure.statistics.label_model.class_scores import ClassScores, log_sum_exp, with_rest
from howsure.statistics.learned.inputs import rest_column
from howsure.statistics.records.records import TEMPERATURES

# Far within float32, in which the measure is served.
LARGEST = 1e30
BLOCK_ELEMENTS = 2**20  # of the products with `mixing`


def as_measure(log_odds: Floats) -> Uncertainty:
    """Return log-odds as the measure ``learned``: their negative, never -0."""
    return np.asarray(0.0 - log_odds).astype(np.float32)


@dataclass(frozen=True, eq=False)
class LabelOdds:
    """Relative log-probabilities of the classes of some samples.

    Attributes
    ----------
    eta : ndarray of float64, shape (n_samples, m)
        Of the recorded classes, best first by the model's own scores.
    rest : ndarray of float64, shape (n_samples, 0 or 1)
        Of all other classes together.
    """

    eta: Floats
    rest: Floats

    def beyond(self, k: int) -> Floats:
        """Return the logarithm of the sum beyond the first ``k``, shape (n_samples, 1)."""
        return log_sum_exp(with_rest(self.eta[:, k:], self.rest))

    @cached_property
    def _beyond_first(self) -> Floats:
        return self.beyond(1)

    def log_odds(self, k: int) -> Floats:
        """Return the log-odds that the label is among the first ``k``, shape (n_samples,)."""
        if k == 1:
            return np.asarray((self.eta[:, :1] - self._beyond_first)[:, 0])
        return np.asarray((log_sum_exp(self.eta[:, :k]) - self.beyond(k))[:, 0])

    def uncertainty(self, k: int) -> Uncertainty:
        """Return the measure ``learned`` of the Top-k event, shape (n_samples,)."""
        return as_measure(self.log_odds(k))

    def shares(self) -> Floats:
        """Return P(class | not the first), shape (n_samples, m); the first column is 1."""
        shares = np.exp(self.eta - self._beyond_first)
        shares[:, 0] = 1.0
        return shares


@dataclass(frozen=True, eq=False, kw_only=True)
class LabelModel:
    """Coefficients of the log-probabilities of the classes.

    With ``p`` the model's own probabilities, ``f`` the predicted class and ``u`` as
    `ClassScores.scaled` has it, class ``j`` has the probability ``exp(eta_j) / sum_i exp(eta_i)``,

        ``eta_j = (1 + slope_j) u_j + offset_j + sum_i u_i mixing_ij + confusion_fj``.

    If only the top classes are recorded, ``mixing`` and ``confusion`` are empty, and all classes
    beyond them share ``exp(rest)`` in proportion to ``(p + floor)^(1 / T)``: with coefficients of
    their own, probabilities would not sum to 1.

    Attributes
    ----------
    n_recorded : int
        The number ``m`` of recorded classes.
    temperature, floor : float
        ``T``, one of `TEMPERATURES` if not all classes are recorded, and what is added to each
        probability.
    offset, slope : ndarray of float64, shape (n_classes,)
    mixing, confusion : ndarray of float64, shape (n_classes, n_classes) or (0, 0)

    Raises
    ------
    ValueError
        If a shape differs, a number is out of range, or the log-odds could exceed 1e30.
    """

    n_recorded: int
    temperature: float
    floor: float
    offset: Floats
    slope: Floats
    mixing: Floats
    confusion: Floats

    def __post_init__(self) -> None:
        n_classes = len(self.offset)
        square = {(0, 0), (n_classes, n_classes)} if self.is_complete else {(0, 0)}
        shapes = {"offset": {(n_classes,)}, "slope": {(n_classes,)}}
        for name, allowed in (shapes | {"mixing": square, "confusion": square}).items():
            values = np.asarray(getattr(self, name), np.float64)
            values = values.reshape(0, 0) if values.size == 0 else values
            if values.shape not in allowed or not (np.abs(values) <= LARGEST).all():
                raise ValueError(f"{name} must hold numbers up to {LARGEST:g} for each class")
            object.__setattr__(self, name, values)
        if not 1 < self.n_recorded <= n_classes:
            raise ValueError(f"n_recorded must lie in [2, {n_classes}]")
        if not TEMPERATURES.min() <= self.temperature <= TEMPERATURES.max():
            raise ValueError("temperature must lie in [1/64, 128]")
        if not (self.is_complete or self.temperature in TEMPERATURES):
            raise ValueError("temperature must be one of those of the records")
        if not 0.0 <= self.floor <= 1.0:
            raise ValueError("floor must lie in [0, 1]")

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return len(self.offset)

    @property
    def is_complete(self) -> bool:
        """Whether all classes are recorded."""
        return self.n_recorded == len(self.offset)

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the inputs beside classes and probabilities: `rest_column`."""
        if self.is_complete:
            return ()
        place = int(np.abs(TEMPERATURES - self.temperature).argmin())
        return (rest_column(self.n_recorded, place),)

    def odds(
        self,
        classes: NDArray[np.integer],
        probabilities: NDArray[np.float32],
        log_rest: NDArray[np.floating],
    ) -> LabelOdds:
        """Return the log-probabilities of some samples, the same in any batch.

        Parameters
        ----------
        classes : ndarray of int, shape (n_samples, at least m)
            Best first.
        probabilities : ndarray of float32, shape (n_samples, at least m)
            Of these classes.
        log_rest : ndarray, shape (n_samples, 0 or 1)
            `columns`.
        """
        m = self.n_recorded
        scores = ClassScores.of(classes[:, :m], probabilities[:, :m], self.n_classes)
        return self.odds_of(scores, log_rest.astype(np.float64))

    def odds_of(self, scores: ClassScores, log_rest: Floats) -> LabelOdds:
        """Return the log-probabilities of scores with exactly m classes."""
        u, rest = scores.scaled(self.temperature, self.floor, log_rest)
        classes = scores.classes
        eta = u + self.slope[classes] * u + self.offset[classes]
        if self.confusion.size:
            eta = eta + self.confusion[classes[:, :1], classes]
        if self.mixing.size:
            eta = eta + self._mixed(u, classes)
        return LabelOdds(eta, rest)

    def _mixed(self, u: Floats, classes: NDArray[np.integer]) -> Floats:
        """Return ``sum_i u_i mixing_ij`` for the classes in their order.

        Summed class by class, so that it does not depend on other rows, as a product of matrices
        may.
        """
        by_class, samples = np.empty_like(u), np.arange(len(u))[:, np.newaxis]
        by_class[samples, classes] = u
        mixed = np.empty_like(u)
        step = max(1, BLOCK_ELEMENTS // self.mixing.size)
        for start in range(0, len(u), step):
            rows = slice(start, start + step)
            mixed[rows] = (by_class[rows, :, np.newaxis] * self.mixing).sum(axis=1)
        return np.asarray(mixed[samples, classes])

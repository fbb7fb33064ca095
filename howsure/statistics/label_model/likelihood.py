"""The likelihood of labels, and the coefficients of largest posterior."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, TypeAlias

import numpy as np
import scipy  # its parts are imported when first used
from numpy.typing import NDArray

from howsure.statistics.arrays import Floats
from howsure.statistics.label_model.class_scores import ClassScores
from howsure.statistics.records.records import TEMPERATURES

# By term: `offset`, `slope`, `mixing` and `confusion` of `LabelModel`; terms left out are missing.
Coefficients: TypeAlias = Mapping[str, Floats]
# Prior standard deviations by term; 0 leaves it out.
Scales: TypeAlias = Mapping[str, float]
STEPS = {"maxiter": 25, "ftol": 1e-5, "gtol": 1e-3, "maxcor": 10}


class Scaling(NamedTuple):
    """Temperature and floor of `ClassScores.scaled`."""

    temperature: float
    floor: float


@dataclass(frozen=True, eq=False)
class LabelledScores:
    """Scores and labels that a model is fitted to.

    Attributes
    ----------
    scores : ClassScores
    log_rests : ndarray of float64, shape (n_samples, 0 or n_temperatures)
        ``log_rest`` of `ClassScores.scaled` at each of `TEMPERATURES`.
    label : ndarray of int, shape (n_samples,)
    label_log_p : ndarray of float64, shape (n_samples,)
        Of the label, as ``log_p``.
    counts : ndarray of float64, shape (n_samples,)
        How many samples each one counts for.
    """

    scores: ClassScores
    log_rests: Floats
    label: NDArray[np.integer]
    label_log_p: Floats
    counts: Floats

    def take(self, rows: NDArray[np.integer] | NDArray[np.bool_] | slice) -> "LabelledScores":
        """Return the samples at ``rows``."""
        scores = ClassScores(
            self.scores.classes[rows], self.scores.log_p[rows], self.scores.n_classes
        )
        return LabelledScores(
            scores,
            self.log_rests[rows],
            self.label[rows],
            self.label_log_p[rows],
            self.counts[rows],
        )

    def log_rest(self, scaling: Scaling) -> Floats:
        """Return ``log_rest`` of `ClassScores.scaled` at a temperature."""
        if self.scores.is_complete:
            return self.log_rests
        place = int(np.abs(TEMPERATURES - scaling.temperature).argmin())
        return self.log_rests[:, place : place + 1]

    def scaled(self, scaling: Scaling) -> tuple[Floats, Floats]:
        """Return `ClassScores.scaled`."""
        return self.scores.scaled(scaling.temperature, scaling.floor, self.log_rest(scaling))

    def label_u(self, scaling: Scaling, u: Floats) -> Floats:
        """Return the scaled log-probability of the label, where ``u`` are those of the classes.

        Beyond the recorded classes it is the share of their rest: floors are added after scaling.
        """
        temperature, floor = scaling
        log_p, first = self.label_log_p, self.scores.log_p[:, 0]
        if floor > 0.0:
            inside, first = (np.log(np.exp(values) + floor) for values in (log_p, first))
            beyond = temperature * np.logaddexp(log_p / temperature, np.log(floor) / temperature)
            log_p = np.where(self.is_recorded, inside, beyond)
        return np.asarray((log_p - first) / temperature + u[:, 0])

    @cached_property
    def is_recorded(self) -> NDArray[np.bool_]:
        """Whether the label is among the recorded classes, shape (n_samples,)."""
        return np.asarray((self.scores.classes == self.label[:, np.newaxis]).any(axis=1))


@dataclass(frozen=True, eq=False)
class Axes:
    """Uncorrelated inputs of ``mixing``: ``(u - centre) turn``. A normal prior stays what it is."""

    centre: Floats
    turn: Floats

    @classmethod
    def of(cls, u: Floats, counts: Floats) -> "Axes":
        """Return the axes of ``u`` by class, weighted by what each sample tells."""
        centre, p = u.mean(axis=0), np.exp(u)
        tells = counts * (p * (1.0 - p)).sum(axis=1)
        deviation = u - centre
        return cls(centre, np.linalg.eigh((deviation.T * tells) @ deviation)[1])


class Likelihood:
    """The likelihood of coefficients, given samples, a temperature and a floor.

    Columns are classes if all are recorded, otherwise ranks. A label beyond the recorded classes
    has its share of their rest. ``axes`` are those of another set, if it has any.
    """

    def __init__(self, samples: LabelledScores, scaling: Scaling, axes: Axes | None = None) -> None:
        scores = samples.scores
        u, self._rest = samples.scaled(scaling)
        rows, self._n_classes = np.arange(len(u)), scores.n_classes
        is_label = scores.classes == samples.label[:, np.newaxis]
        self._inside, self._at = samples.is_recorded, is_label.argmax(axis=1)
        self._label_u = samples.label_u(scaling, u)
        self._u, self._counts = u, samples.counts[:, np.newaxis]
        self._rows, self._classes = rows, scores.classes
        self._is_complete, self.axes = scores.is_complete, axes
        self._inputs: dict[str, Floats] = {}
        if scores.is_complete:
            self._u, self._at = np.empty_like(u), samples.label
            np.put_along_axis(self._u, scores.classes, u, axis=1)
            self.axes = Axes.of(self._u, samples.counts) if axes is None else axes
            predicted = np.zeros_like(u)
            predicted[rows, scores.classes[:, 0]] = 1.0
            mixed = (self._u - self.axes.centre) @ self.axes.turn
            self._inputs = {"mixing": mixed, "confusion": predicted}
        self._labels = np.zeros_like(u)
        self._labels[rows, self._at] = self._inside * samples.counts

    def loss(self, coefficients: Coefficients) -> float:
        """Return the negative log-likelihood."""
        return self._parts(coefficients)[0]

    def _parts(self, coefficients: Coefficients) -> tuple[float, Floats]:
        """Return the negative log-likelihood, and the probabilities of the columns."""
        eta = self._eta(coefficients)
        label = np.where(self._inside, eta[self._rows, self._at], self._label_u)
        most = np.concatenate([eta, self._rest], axis=1).max(axis=1, keepdims=True)
        p = np.exp(eta - most)
        total = p.sum(axis=1, keepdims=True) + np.exp(self._rest - most).sum(axis=1, keepdims=True)
        p /= total
        losses = (most + np.log(total))[:, 0] - label
        return float(losses @ self._counts[:, 0]), p

    def _eta(self, coefficients: Coefficients) -> Floats:
        eta = self._u
        for term, values in coefficients.items():
            if term in self._inputs:
                eta = eta + self._inputs[term] @ values
            else:
                spread = values if self._is_complete else values[self._classes]
                eta = eta + (spread * self._u if term == "slope" else spread)
        return eta

    def _sums(self, term: str, values: Floats, *, squared: bool = False) -> Floats:
        """Return, for each coefficient of a term, the sum of ``values`` times its input."""
        if term in self._inputs:
            inputs = self._inputs[term]
            return np.asarray((np.square(inputs) if squared else inputs).T @ values)
        if term == "slope":
            values = values * (np.square(self._u) if squared else self._u)
        if self._is_complete:
            return np.asarray(values.sum(axis=0))
        sums = np.bincount(self._classes.ravel(), values.ravel(), self._n_classes)
        return np.asarray(sums, dtype=np.float64)

    @cached_property
    def _curvature(self) -> Floats:
        """Second derivative of the loss by ``eta`` of each column, without coefficients."""
        p = self._parts({})[1]
        return np.asarray(p * (1.0 - p) * self._counts)

    def mode(self, scales: Scales, start: Coefficients) -> dict[str, Floats]:
        """Return the coefficients of largest posterior, by L-BFGS.

        Each coordinate is scaled to about the same curvature.

        Parameters
        ----------
        scales
            Of the terms to use, each positive.
        start
            Coefficients to start from; missing ones are 0.
        """
        if not scales:
            return {}
        curvatures = {term: self._sums(term, self._curvature, squared=True) for term in scales}
        steps = {
            term: scale / np.sqrt(1.0 + scale**2 * curvatures[term])
            for term, scale in scales.items()
        }
        ends = np.cumsum([step.size for step in steps.values()])[:-1]

        def unpacked(x: Floats) -> dict[str, Floats]:
            parts = zip(steps.items(), np.split(x, ends), strict=True)
            return {term: part.reshape(step.shape) * step for (term, step), part in parts}

        def loss(x: Floats) -> tuple[float, Floats]:
            coefficients = unpacked(x)
            total, p = self._parts(coefficients)
            residuals = p * self._counts - self._labels
            gradient = []
            for term, values in coefficients.items():
                pull = values / scales[term] ** 2
                total += float(np.sum(values * pull)) / 2.0
                gradient.append((self._sums(term, residuals) + pull) * steps[term])
            return total, np.concatenate([part.ravel() for part in gradient])

        x = np.concatenate(
            [(start.get(term, np.zeros(1)) / step).ravel() for term, step in steps.items()]
        )
        solution = scipy.optimize.minimize(loss, x, jac=True, method="L-BFGS-B", options=STEPS)
        return unpacked(solution.x)

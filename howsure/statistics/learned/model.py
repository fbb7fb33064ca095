"""The learned measure: a formula from the head's outputs to the log-odds of a hit."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from howsure.statistics.arrays import Floats
from howsure.statistics.learned.inputs import input_columns
from howsure.statistics.records.records import USUAL

N_INPUTS = 4
# A log ratio below this means that the other classes have no mass in float32.
SATURATED_BELOW = -85.0
# Far within float32, in which the measure is served.
LARGEST = 1e30


@dataclass(frozen=True, eq=False, kw_only=True)
class LearnedModel:
    """Coefficients of the log-odds of a hit.

    With ``v`` the inputs (`howsure.statistics.learned.inputs.input_columns`) clipped to
    ``[lower, upper]``, ``c`` the predicted class and ``d`` the second one, the log-odds are
    ``intercept + linear . v + square . v^2 + offset[c] + slope[c] v_0 + second[d]``, plus
    ``saturated`` where the second input is below -85. The measure is their negative.

    Attributes
    ----------
    k : int
        The event.
    temperature : int
        Index in `TEMPERATURES`, one of the first 24.
    intercept, saturated : float
    linear, square, lower, upper : ndarray of float64, shape (4,)
    offset, slope, second : ndarray of float64, shape (n_classes,)

    Raises
    ------
    ValueError
        If a shape differs, a number is not finite, the temperature does not exist, a ``lower``
        exceeds its ``upper``, or the measure could exceed 1e30.
    """

    k: int
    temperature: int
    intercept: float
    saturated: float
    linear: Floats
    square: Floats
    lower: Floats
    upper: Floats
    offset: Floats
    slope: Floats
    second: Floats

    def __post_init__(self) -> None:
        for name in ("linear", "square", "lower", "upper"):
            self._convert(name, (N_INPUTS,))
        n_classes = len(self.offset)
        for name in ("offset", "slope", "second"):
            self._convert(name, (n_classes,))
        if not 0 <= self.temperature < USUAL:
            raise ValueError(f"temperature must be an index below {USUAL}")
        if not np.isfinite([self.intercept, self.saturated]).all():
            raise ValueError("intercept and saturated must be finite")
        if (self.lower > self.upper).any():
            raise ValueError("lower must not exceed upper")
        if not self._largest() <= LARGEST:
            raise ValueError(f"the measure must not exceed {LARGEST:g} for any input")

    def _largest(self) -> float:
        """Return a bound of the measure's size."""
        with np.errstate(over="ignore"):
            sizes = np.maximum(np.abs(self.lower), np.abs(self.upper))
            by_input = (np.abs(self.linear) + np.abs(self.square) * sizes) * sizes
            by_class = [np.abs(v).max(initial=0.0) for v in (self.offset, self.second)]
            slope = np.abs(self.slope).max(initial=0.0) * sizes[0]
            constants = abs(self.intercept) + abs(self.saturated)
            return float(constants + by_input.sum() + sum(by_class) + slope)

    def _convert(self, name: str, shape: tuple[int, ...]) -> None:
        values = np.asarray(getattr(self, name), np.float64)
        if values.shape != shape or not np.isfinite(values).all():
            raise ValueError(f"{name} must hold finite numbers of shape {shape}")
        object.__setattr__(self, name, values)

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return len(self.offset)

    @property
    def columns(self) -> tuple[str, str, str, str]:
        """Names of the inputs."""
        return input_columns(self.k, self.temperature)

    def uncertainty(
        self, inputs: NDArray[np.floating], first: NDArray[np.integer], other: NDArray[np.integer]
    ) -> Floats:
        """Return the measure, float64 of shape (n_samples,), the same in any batch.

        Parameters
        ----------
        inputs : ndarray, shape (n_samples, 4)
        first, other : ndarray of int, shape (n_samples,)
            The predicted class and the second one.
        """
        values = np.asarray(inputs, np.float64)
        held = np.minimum(np.maximum(values, self.lower), self.upper)
        total = self.intercept + self.offset[first] + self.second[other]
        total = total + self.slope[first] * held[:, 0]
        for i in range(N_INPUTS):
            total = total + (self.linear[i] + self.square[i] * held[:, i]) * held[:, i]
        # 0 - x, never -0.
        return np.asarray(
            0.0 - np.where(values[:, 1] < SATURATED_BELOW, total + self.saturated, total)
        )

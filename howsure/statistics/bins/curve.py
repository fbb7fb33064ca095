"""A smooth curve, stored as knots: from an uncertainty to a probability and its interval."""

from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

import numpy as np

from howsure.statistics.arrays import Floats, Rates, Uncertainty

COLUMNS = ("uncertainty", "probability", "lower", "upper")
MAX_KNOTS = 98

Values: TypeAlias = tuple[Rates, Rates, Rates]


@dataclass(frozen=True, eq=False, kw_only=True)
class Curve:
    """Probability and interval at some uncertainties, linear between and constant beyond them.

    Attributes
    ----------
    uncertainty : ndarray of float64, shape (n_knots,)
        Strictly ascending, and exact in float32.
    probability, lower, upper : ndarray of float64, shape (n_knots,)
        ``lower <= probability <= upper``; a line between two knots keeps this.

    Raises
    ------
    ValueError
        If a column has another length, knots do not ascend, or a value breaks its rule.
    """

    uncertainty: Floats
    probability: Rates
    lower: Rates
    upper: Rates

    def __post_init__(self) -> None:
        for name in COLUMNS:
            object.__setattr__(self, name, np.asarray(getattr(self, name), dtype=np.float64))
        if not len(self.uncertainty) or {getattr(self, name).shape for name in COLUMNS} != {
            (len(self.uncertainty),)
        }:
            raise ValueError("the columns of a curve must have one value per knot, at least one")
        if not (self.uncertainty[1:] > self.uncertainty[:-1]).all():
            raise ValueError("the uncertainties of a curve must ascend strictly")
        if (self.uncertainty.astype(np.float32) != self.uncertainty).any():
            raise ValueError("the uncertainties of a curve must be float32 numbers")
        ordered = (self.lower >= 0.0) & (self.lower <= self.probability)
        if not (ordered & (self.probability <= self.upper) & (self.upper <= 1.0)).all():
            raise ValueError("a curve must have 0 <= lower <= probability <= upper <= 1")

    @cached_property
    def lines(self) -> tuple[Floats, Floats, Floats]:
        """Start, values and slopes of the line that ends at each knot, and of the one beyond.

        Shapes (n_knots + 1,), (3, n_knots + 1) and (3, n_knots + 1); rows are probability, lower
        and upper. The line of an uncertainty is the number of knots below it.
        """
        x, y = self.uncertainty, np.stack([self.probability, self.lower, self.upper])
        slopes = np.zeros((3, len(x) + 1))
        slopes[:, 1:-1] = np.diff(y, axis=1) / np.diff(x)
        return np.append(x[:1], x), np.concatenate([y[:, :1], y], axis=1), slopes

    def at(self, uncertainty: Uncertainty) -> Values:
        """Return probability, lower and upper of each sample, float64 of shape (n_samples,).

        Each result is one product and one sum, so the same in any order and any batch.
        """
        values = np.asarray(uncertainty, np.float32).astype(np.float64)
        start, base, slope = self.lines
        line = np.searchsorted(self.uncertainty, values, side="left")
        on_line = base[:, line] + slope[:, line] * (values - start[line])
        # At the end of a line a number next to 0 or 1 is rounded beyond it.
        probability, lower, upper = np.clip(on_line, 0.0, 1.0)
        return probability, np.minimum(lower, probability), np.maximum(upper, probability)

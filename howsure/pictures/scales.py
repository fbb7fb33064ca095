"""Axes of pictures: where values lie, which of them are marked, and what is written there."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, TypeAlias

Kind: TypeAlias = Literal["linear", "root", "log"]
MOST_TICKS = 6
_STEPS = (1, 2, 5, 10)
_DIGITS = 6
_LONG = 10_000
_SHORT = 2  # powers of ten


def plain_number(value: float) -> str:
    """Return a number as on an axis: no needless digits, a true minus."""
    text = f"{value:,.0f}" if abs(value) >= _LONG else f"{round(value, 10):.{_DIGITS}g}"
    return text.replace("-", "\u2212")


def percent(share: float) -> str:
    """Return a share as on an axis, on one line."""
    return f"{plain_number(100 * share)}\u00a0%"


@dataclass(frozen=True)
class Scale:
    """An axis of numbers.

    Attributes
    ----------
    least, most : float
        Its ends; values beyond are drawn at the end.
    title : str
    write : callable
        From a value to the text of its tick.
    kind : {"linear", "root", "log"}
        A root scale, of square roots with their sign, has room for small values; a log scale shows
        ratios, and begins above 0.
    ticks : sequence of float
        Values to mark in place of round ones.

    Raises
    ------
    ValueError
        If the ends are not finite and ascending, or a log scale does not begin above 0.
    """

    least: float
    most: float
    title: str = ""
    write: Callable[[float], str] = plain_number
    kind: Kind = "linear"
    ticks: Sequence[float] = ()

    def __post_init__(self) -> None:
        ends = (self.least, self.most)
        if not (all(map(math.isfinite, ends)) and self.least < self.most):
            raise ValueError(f"the ends of an axis must be finite and ascend, not {ends}")
        if self.kind == "log" and self.least <= 0.0:
            raise ValueError(f"a log axis must begin above 0, not at {self.least}")

    def place(self, value: float) -> float:
        """Return where a value lies: 0 at the least, 1 at the most."""
        start, span = self._span
        return (self._stretch(min(max(value, self.least), self.most)) - start) / span

    def tick_values(self, most: int = MOST_TICKS) -> list[float]:
        """Return at most about ``most`` values to mark, ascending."""
        values = self.ticks or self._round_values(most)
        return [value for value in values if self.least <= value <= self.most]

    @cached_property
    def _span(self) -> tuple[float, float]:
        start = self._stretch(self.least)
        return start, self._stretch(self.most) - start

    def _stretch(self, value: float) -> float:
        if self.kind == "linear":
            return value
        if self.kind == "log":
            return math.log10(value)
        return math.copysign(math.sqrt(abs(value)), value)

    def _round_values(self, most: int) -> list[float]:
        if self.kind == "log":
            return self._powers(most)
        step = round_step(self.most - self.least, most)
        first, last = math.ceil(self.least / step - 1e-9), math.floor(self.most / step + 1e-9)
        return [step * number for number in range(first, last + 1)]

    def _powers(self, most: int) -> list[float]:
        """Return powers of ten, 1 among them; of a short axis 2 and 5 times these, too."""
        first, last = math.floor(math.log10(self.least)), math.ceil(math.log10(self.most))
        step = -(-(last - first) // most)
        powers = [10.0**power for power in range(first, last + 1) if power % step == 0]
        if last - first > _SHORT:
            return powers
        return sorted(digit * power for power in powers for digit in (1, 2, 5))


def round_step(span: float, most: int = MOST_TICKS) -> float:
    """Return the least of 1, 2 or 5 times a power of ten that ``most`` steps of cover a span."""
    least = span / most
    unit = 10.0 ** math.floor(math.log10(least))
    return next(unit * step for step in _STEPS if unit * step >= least * (1 - 1e-9))


def round_above(value: float) -> float:
    """Return a round end, at or above a positive value, of an axis that begins at 0."""
    step = round_step(value)
    return step * math.ceil(value / step - 1e-9)


@dataclass(frozen=True)
class Names:
    """An axis of names: one row or column of equal size each, at 0, 1, 2 and so on."""

    names: Sequence[str]
    title: str = ""

    def place(self, value: float) -> float:
        """Return where the middle of a row or column lies, from 0 to 1."""
        return (value + 0.5) / max(len(self.names), 1)


Axis: TypeAlias = Scale | Names

"""The axes of a picture: margins that hold their texts, places of values, ticks and grid."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

from howsure.pictures import elements
from howsure.pictures.elements import Point, line_path
from howsure.pictures.lettering import SIZE, fit_text, text_width
from howsure.pictures.scales import MOST_TICKS, Axis, Names, Scale

EDGE = 4.0
LINE = 15.0
_MOST_OF_NAMES = 0.36  # of the width
_MOST_BELOW = 84.0  # pixels of a slanted name
_SLANT = math.sqrt(0.5)
_APART = 8.0  # between ticks below
_PER_ROW_TICK = 30.0


@dataclass(frozen=True)
class Axes:
    """Two axes around a frame; one grid belongs to the values that are read off.

    That is the grid of ``y``, or that of ``x`` if each row has a name.

    Attributes
    ----------
    x, y : Scale or Names
    height, width : float
        Pixels: the height of the frame, and the width of the whole picture.
    """

    x: Axis
    y: Axis
    height: float
    width: float

    @property
    def top(self) -> float:
        """The upper end of the frame; the title of ``y`` stands above."""
        return LINE + 6.0 if self.y.title else 8.0

    @property
    def floor(self) -> float:
        """The lower end of the frame."""
        return self.top + self.height

    @cached_property
    def left(self) -> float:
        """The left end of the frame; texts of ``y`` stand beside."""
        return EDGE + 6.0 + max(map(text_width, self._row_texts), default=0.0)

    @cached_property
    def right(self) -> float:
        """The right end of the frame; half of the last tick's text is beyond."""
        if isinstance(self.x, Names):
            return self.width - EDGE
        texts = [self.x.write(value) for value in self.x.tick_values()[-1:]]
        return self.width - EDGE - max(map(text_width, texts), default=0.0) / 2.0

    @cached_property
    def bottom(self) -> float:
        """The end of all texts below the frame."""
        texts = LINE
        if isinstance(self.x, Names) and not self._are_level:
            texts = 12.0 + _SLANT * max(map(text_width, self._column_names), default=0.0)
        return self.floor + texts + (LINE if self.x.title else 0.0) + 5.0

    @cached_property
    def _column_names(self) -> list[str]:
        names = self.x.names if isinstance(self.x, Names) else ()
        return [fit_text(name, _MOST_BELOW) for name in names]

    @property
    def _are_level(self) -> bool:
        """Whether the names below fit side by side."""
        room = (self.right - self.left) / max(len(self._column_names), 1) - _APART
        return all(text_width(name) <= room for name in self._column_names)

    def place(self, x: float, y: float) -> Point:
        """Return where a point lies, in pixels."""
        down = self.y.place(y) if isinstance(self.y, Names) else 1.0 - self.y.place(y)
        across = self.x.place(x)
        return self.left + across * (self.right - self.left), self.top + self.height * down

    def drawn(self) -> Iterator[str]:
        """Yield grid, ticks and titles."""
        yield from self._rows()
        yield from self._names_below() if isinstance(self.x, Names) else self._columns(self.x)
        if self.x.title:
            half = text_width(self.x.title) / 2
            middle = (self.left + self.right) / 2
            middle = max(min(middle, self.width - EDGE - half), EDGE + half)
            yield elements.text(self.x.title, middle, self.bottom - 5.0, "ink")
        if self.y.title:
            yield elements.text(self.y.title, EDGE, SIZE, "ink", "start")

    def _rows(self) -> Iterator[str]:
        for middle, written in zip(self._row_places, self._row_texts, strict=True):
            if isinstance(self.y, Scale):
                yield self._rule(self.left, middle, self.right, middle)
            yield elements.text(written, self.left - 6.0, middle + 4.0, "muted", "end")
        if isinstance(self.y, Scale):
            ends = [(self.left, self.floor), (self.right, self.floor)]
            yield elements.path(line_path(ends), stroke="muted")

    def _columns(self, x: Scale) -> Iterator[str]:
        for value in self._column_values(x):
            across = self._across(x, value)
            if isinstance(self.y, Names):
                yield self._rule(across, self.top, across, self.floor)
            yield elements.text(x.write(value), across, self.floor + LINE, "muted")

    def _names_below(self) -> Iterator[str]:
        for column, name in enumerate(self._column_names):
            across = self._across(self.x, column)
            if self._are_level:
                yield elements.text(name, across, self.floor + LINE, "muted")
            else:
                yield elements.slanted(name, across + 3.0, self.floor + 11.0, "muted")

    def _across(self, x: Axis, value: float) -> float:
        return self.left + x.place(value) * (self.right - self.left)

    def _rule(self, x0: float, y0: float, x1: float, y1: float) -> str:
        return elements.path(line_path([(x0, y0), (x1, y1)]), stroke="grid")

    @cached_property
    def _row_values(self) -> Sequence[float]:
        if isinstance(self.y, Names):
            return range(len(self.y.names))
        return self.y.tick_values(min(max(int(self.height / _PER_ROW_TICK), 2), MOST_TICKS))

    @property
    def _row_places(self) -> list[float]:
        down = [self.y.place(value) for value in self._row_values]
        return [
            self.top + self.height * (at if isinstance(self.y, Names) else 1.0 - at) for at in down
        ]

    @cached_property
    def _row_texts(self) -> list[str]:
        if isinstance(self.y, Names):
            return [fit_text(name, self.width * _MOST_OF_NAMES) for name in self.y.names]
        return [self.y.write(value) for value in self._row_values]

    def _column_values(self, x: Scale) -> Sequence[float]:
        """Return as many ticks as have room side by side."""
        for most in range(MOST_TICKS, 1, -1):
            values = x.tick_values(most)
            if self._have_room(x, values):
                return values
        return [value for value in (values[0], values[-1]) if values[0] < values[-1]]

    def _have_room(self, x: Scale, values: Sequence[float]) -> bool:
        return all(
            self._across(x, right) - self._across(x, left)
            >= (text_width(x.write(left)) + text_width(x.write(right))) / 2 + _APART
            for left, right in pairwise(values)
        )

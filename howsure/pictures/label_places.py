"""Where labels go: beside what they name, inside the frame, never over one another."""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from howsure.pictures.lettering import SIZE, text_width

GAP = 7.0  # between a mark and its label
_DISTANCES = (GAP, 16.0, 28.0)
_LINE = SIZE + 2.0
_CELL = 6.0  # pixels, of the grid in which marks are looked up
_MOST_ANCHORS = 12


class Box(NamedTuple):
    """A rectangle in pixels."""

    left: float
    top: float
    right: float
    bottom: float

    def meets(self, other: "Box") -> bool:
        """Tell whether two rectangles overlap."""
        return (
            self.left < other.right
            and other.left < self.right
            and self.top < other.bottom
            and other.top < self.bottom
        )


class LabelPlaces:
    """Finds a free place for each label: where no other label is, and the fewest marks are.

    Parameters
    ----------
    frame : Box
        Labels stay inside.
    marks : iterable of pairs of float
        Points that labels rather do not cover.
    """

    def __init__(self, frame: Box, marks: Iterable[tuple[float, float]]) -> None:
        self._frame = frame
        self._marked = {(x // _CELL, y // _CELL) for x, y in marks}
        self._labels: list[Box] = []

    def find(self, text: str, anchors: Sequence[tuple[float, float]]) -> Box | None:
        """Return a place near one of the anchors, the first ones if it is all the same.

        None if every place leaves the frame or covers another label.
        """
        some = anchors[:: -(-len(anchors) // _MOST_ANCHORS) or 1]
        prices = {
            box: self._covered(box) + detour
            for box, detour in _around(some, text_width(text))
            if self._is_free(box)
        }
        place = min(prices, key=lambda box: prices[box], default=None)
        if place is not None:
            self._labels.append(place)
        return place

    def _is_free(self, box: Box) -> bool:
        frame = self._frame
        return (
            frame.left <= box.left
            and box.right <= frame.right
            and frame.top <= box.top
            and box.bottom <= frame.bottom
            and not any(box.meets(label) for label in self._labels)
        )

    def _covered(self, box: Box) -> int:
        columns = range(int(box.left // _CELL), int(box.right // _CELL) + 1)
        rows = range(int(box.top // _CELL), int(box.bottom // _CELL) + 1)
        return sum((column, row) in self._marked for column in columns for row in rows)


def _around(anchors: Sequence[tuple[float, float]], width: float) -> Iterator[tuple[Box, float]]:
    """Yield rectangles beside the anchors, each with the price of being far away."""
    for far, distance in enumerate(_DISTANCES):
        for rank, (x, y) in enumerate(anchors):
            for across, down in _SIDES:
                left = x + across * distance - (width * (1 - across) / 2)
                top = y + down * distance - (_LINE * (1 - down) / 2)
                yield Box(left, top, left + width, top + _LINE), _FAR * far + _LATE * rank


# Right, left, above, below, and between these.
_SIDES = ((1, 0), (-1, 0), (0, -1), (0, 1), (1, -1), (-1, -1), (1, 1), (-1, 1))
# In marks that a label may cover instead.
_FAR, _LATE = 8.0, 0.3

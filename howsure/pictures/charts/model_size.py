"""The chart of a score against the size of models."""

from collections.abc import Sequence
from typing import NamedTuple

from howsure.pictures.lettering import fit_text
from howsure.pictures.picture import Picture
from howsure.pictures.scales import Scale

_MOST_OF_NAME = 200.0  # pixels
_UNITS = ((1e9, "G"), (1e6, "M"), (1e3, "k"))


class SizedScore(NamedTuple):
    """The size of a model, and its score between 0 and 1."""

    name: str
    size: float
    score: float


def by_size(models: Sequence[SizedScore], unit: str, title: str) -> Picture:
    """Draw the score of each model against its size in ``unit``, on a log axis."""
    sizes, scores = [one.size for one in models], [one.score for one in models]
    least, most = min(scores), max(scores)
    if least == most:
        least, most = max(least - 0.1, 0.0), min(most + 0.1, 1.0)
    # Labels stand above and below the points; ticks are further apart, so none is beyond 0 or 1.
    room = 0.2 * (most - least)
    picture = Picture(
        Scale(min(sizes) / 2, 2 * max(sizes), f"{unit} of the model", _short, "log"),
        Scale(least - room, most + room, title),
        height=150,
    )
    for name, size, score in models:
        picture.points([(size, score)], "blue")
        picture.label(fit_text(name, _MOST_OF_NAME), [(size, score)])
    return picture


def _short(size: float) -> str:
    unit, letter = next((one for one in _UNITS if size >= one[0]), (1.0, ""))
    return f"{size / unit:g}\u00a0{letter}".strip()

"""Answers of the uncertainty head as they come from a child: one matrix, a row a sample."""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from service.runner.description import HeadOutputs

# So few rows are read as Python's numbers: to call numpy takes longer than they do.
FEW_ROWS = 24


class HeadMatrix:
    """Rows of a run: top classes, their scores, uncertainties.

    Parameters
    ----------
    words : ndarray of float32, shape (n_rows, n_words)
    n_top : int
        How many top classes each row has.
    places : mapping of str to int
        Where in a row each uncertainty stands, by column.

    Attributes
    ----------
    numbers : list of list of float, or None
        The same where there are `FEW_ROWS` or fewer.
    """

    __slots__ = ("_outputs", "n_rows", "n_top", "numbers", "places", "words")

    def __init__(self, words: NDArray[np.float32], n_top: int, places: Mapping[str, int]) -> None:
        self.words = words
        self.n_top = n_top
        self.places = places
        self.n_rows = len(words)
        self.numbers: list[list[float]] | None = words.tolist() if self.n_rows <= FEW_ROWS else None
        self._outputs: HeadOutputs | None = None

    @property
    def outputs(self) -> HeadOutputs:
        """All rows, taken apart."""
        if self._outputs is None:
            words, n_top = self.words, self.n_top
            self._outputs = HeadOutputs(
                words[:, :n_top].astype(np.int64),
                words[:, n_top : 2 * n_top],
                {name: words[:, place] for name, place in self.places.items()},
            )
        return self._outputs

    def rows(self, start: int, stop: int) -> "HeadMatrix":
        """Return some of the rows."""
        return HeadMatrix(self.words[start:stop], self.n_top, self.places)

    @classmethod
    def joined(cls, parts: Sequence["HeadMatrix"]) -> "HeadMatrix":
        """Join rows of one model in order."""
        words = np.concatenate([part.words for part in parts])
        return cls(words, parts[0].n_top, parts[0].places)

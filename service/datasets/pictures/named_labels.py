"""The class that each picture is of, by its name, before classes have indices."""

from array import array
from collections.abc import Iterable, Mapping

import numpy as np

from service.core.arrays import Labels
from service.errors import InvalidDataset, TooLarge, shown


class NamedLabels:
    """A name for each picture, in their order; ``more`` are classes of which there is none."""

    def __init__(self, *, location: str, max_classes: int, more: Iterable[str] = ()) -> None:
        self._location = location
        self._max_classes = max_classes
        self._codes = array("L")
        self._code_of: dict[str, int] = {}
        self._more = frozenset(more)

    @property
    def names(self) -> frozenset[str]:
        """All names that occur."""
        return self._more | self._code_of.keys()

    def append(self, name: str) -> None:
        """Add the class of the next picture."""
        self._codes.append(self._code_of.setdefault(name, len(self._code_of)))
        if len(self._code_of) > self._max_classes:
            raise TooLarge.at(
                self._location, f"expected at most {self._max_classes} classes; send fewer"
            )

    def indices(self, index_of: Mapping[str, int]) -> Labels:
        """Return the label of each picture, given the index of each class."""
        for name in self.names:
            if not 0 <= index_of[name] < self._max_classes:
                raise InvalidDataset.at(
                    self._location,
                    f"expected a class from 0 to {self._max_classes - 1}, got {index_of[name]} "
                    f"for {shown(name)}; classes are counted from 0",
                )
        of_code = np.array([index_of[name] for name in self._code_of], np.int64)
        labels: Labels = of_code[np.frombuffer(self._codes, dtype=f"u{self._codes.itemsize}")]
        return labels

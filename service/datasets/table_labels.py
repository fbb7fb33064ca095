"""The column of labels of a table: class indices, or names of classes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from service.core.arrays import Labels
from service.datasets.checks import check_labels
from service.datasets.limits import DatasetLimits
from service.datasets.table_sources import number_column
from service.errors import InvalidDataset, TooLarge

MAX_NAME_LENGTH = 200


class LabelColumn(Protocol):
    """The column that has the class of each sample."""

    @property
    def name(self) -> str:
        """What it is called."""

    def read(self, record_batch: Any, start: int) -> Labels:  # noqa: ANN401 - pyarrow has no types
        """Return the checked classes of a pyarrow.RecordBatch, which begins at row ``start``."""


@dataclass(frozen=True)
class ClassIndexColumn:
    """Labels that are class indices.

    ``renumbered`` has the class that is meant by each index, where that is another one.
    """

    name: str
    location: str
    n_classes: int | None
    n_allowed: int
    renumbered: Sequence[int] | None = None

    def read(self, record_batch: Any, start: int) -> Labels:  # noqa: ANN401 - as above
        """Return classes, each from 0 to below their number."""
        labels = check_labels(
            number_column(record_batch, self.name, start, location=self.location),
            place=f"{self.location}.{self.name}",
            start=start,
            n_classes=self.n_classes,
            n_allowed=self.n_allowed,
        )
        if self.renumbered is None:
            return labels
        return np.asarray(self.renumbered, np.int64)[labels]


@dataclass(frozen=True)
class ClassNameColumn:
    """Labels that are names of classes."""

    name: str
    location: str
    class_map: Mapping[str, int]

    def read(self, record_batch: Any, start: int) -> Labels:  # noqa: ANN401 - as above
        """Return the class that each name stands for."""
        place = f"{self.location}.{self.name}"
        names, rows = _names(record_batch.column(self.name), start, place=place)
        return np.array([self.class_map[name] for name in names], np.int64)[rows]


class ClassNames:
    """The names of classes that a column holds, gathered a record batch at a time."""

    def __init__(self, name: str, *, location: str, limits: DatasetLimits) -> None:
        self.name = name
        self._place = f"{location}.{name}"
        self._limits = limits
        self._found: set[str] = set()

    @property
    def found(self) -> list[str]:
        """The names, in their order as text."""
        return sorted(self._found)

    def read(self, record_batch: Any, start: int) -> Labels:  # noqa: ANN401 - as above
        """Gather names; what is returned counts the rows and means nothing."""
        names, rows = _names(record_batch.column(self.name), start, place=self._place)
        self._found.update(names)
        if len(self._found) > self._limits.max_classes:
            raise TooLarge.at(
                self._place, f"expected at most {self._limits.max_classes} classes, got more"
            )
        return np.zeros(len(rows), np.int64)


def _names(column: Any, start: int, *, place: str) -> tuple[list[str], Labels]:  # noqa: ANN401 - as above
    """Return the distinct names in a column, and for each row the place of its own among them."""
    import pyarrow as pa  # noqa: PLC0415 - an optional extra

    try:
        # pyarrow looks itself neither for text that is none, nor for places beyond a dictionary.
        column.validate(full=True)
    except pa.ArrowException as error:
        raise InvalidDataset.at(
            place, "expected names of classes in UTF-8, got damaged bytes"
        ) from error
    if not isinstance(column, pa.DictionaryArray):
        column = column.dictionary_encode()
    if column.null_count:
        row = int(np.argmax(column.is_null().to_numpy(zero_copy_only=False)))
        raise InvalidDataset.at(
            f"{place}[{start + row}]", "expected the name of a class, got an empty cell"
        )
    used, rows = np.unique(column.indices.to_numpy(zero_copy_only=False), return_inverse=True)
    # Names that are integers may come as such.
    names = [str(name) for name in column.dictionary.take(pa.array(used)).to_pylist()]
    for at, name in enumerate(names):
        if not name or len(name) > MAX_NAME_LENGTH:
            row = int(np.argmax(rows == at))
            raise InvalidDataset.at(
                f"{place}[{start + row}]",
                f"expected the name of a class, of at most {MAX_NAME_LENGTH} characters, got "
                + (f"{len(name)}" if name else "an empty cell"),
            )
    return names, rows.astype(np.int64)

"""Arrays out of the columns of a table: outputs, features, lists. One record batch at a time."""

import math
from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from service.datasets.checks import Places, check_inputs, check_outputs
from service.datasets.dataset import AnyArray
from service.datasets.table_columns import TableColumns
from service.errors import InvalidDataset

# Rows that are read at a time have about as many bytes, those of one row if it alone has more.
READ_BYTES = 4 * 1024**2
_ANY_ROWS = 2**31


class ArraySource(Protocol):
    """One array of a set, made of one or more columns."""

    @property
    def columns(self) -> Sequence[str]:
        """What is read of the file for it."""

    @property
    def dtype(self) -> str:
        """The numpy name of its dtype."""

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of one sample."""

    @property
    def most_rows(self) -> int:
        """Rows that may be read at a time, for the memory that takes."""

    def read(self, record_batch: Any, start: int) -> AnyArray:  # noqa: ANN401 - pyarrow has no types
        """Return the checked rows of a pyarrow.RecordBatch, which begins at row ``start``."""


class OutputColumns:
    """A column for each class."""

    most_rows = _ANY_ROWS

    def __init__(self, columns: TableColumns, dtype: str, *, location: str) -> None:
        self.columns = columns.classes
        self.dtype = dtype
        self.shape = (columns.n_classes,)
        self._kind = columns.kind
        self._location = location
        self._places = Places(location, columns.kind, columns.prefix)

    def read(self, record_batch: Any, start: int) -> AnyArray:  # noqa: ANN401 - as above
        """Return outputs of shape (rows, classes)."""
        outputs = _stacked(
            record_batch, self.columns, self.dtype, start=start, location=self._location
        )
        check_outputs(outputs, kind=self._kind, places=self._places, start=start)
        return outputs


class FeatureColumns:
    """Columns of one number a row, side by side in the order they are given in."""

    def __init__(self, columns: Sequence[str], dtype: str, *, location: str) -> None:
        self.columns = columns
        self.dtype = dtype
        self.shape = (len(columns),)
        self.most_rows = max(1, READ_BYTES // (8 * len(columns)))
        self._location = location

    def read(self, record_batch: Any, start: int) -> AnyArray:  # noqa: ANN401 - as above
        """Return features of shape (rows, columns)."""
        features = _stacked(
            record_batch, self.columns, self.dtype, start=start, location=self._location
        )
        if not np.isfinite(features).all():
            for column, values in zip(self.columns, features.T, strict=True):
                check_inputs(values, place=f"{self._location}.{column}", start=start)
        return features


class ListColumn:
    """A column of lists, of lists of lists and so on, all of one shape."""

    def __init__(self, name: str, dtype: str, shape: tuple[int, ...], *, location: str) -> None:
        self.columns = [name]
        self.dtype = dtype
        self.shape = shape
        self.most_rows = max(1, READ_BYTES // (8 * math.prod(shape)))
        self._place = f"{location}.{name}"

    def read(self, record_batch: Any, start: int) -> AnyArray:  # noqa: ANN401 - as above
        """Return the values of the lists, shape (rows, *lengths)."""
        (name,) = self.columns
        values = record_batch.column(name)
        n_rows, per_row = len(values), 1
        for axis, length in enumerate(self.shape):
            _refuse_null(values, "a list", start, per_row, place=self._place)
            self._check_lengths(values, length, start, per_row, axis=axis)
            values = values.flatten()
            per_row *= length
        _refuse_null(values, "a number", start, per_row, place=self._place)
        found: AnyArray = values.to_numpy(zero_copy_only=False)
        if found.dtype.kind in "iu":
            self._refuse_overflow(found, start, per_row)
        # What pyarrow gives is its own memory, which may not be written to.
        array: AnyArray = found.astype(self.dtype).reshape(n_rows, *self.shape)
        check_inputs(array, place=self._place, start=start)
        return array

    def _check_lengths(
        self,
        values: Any,  # noqa: ANN401 - as above
        length: int,
        start: int,
        per_row: int,
        *,
        axis: int,
    ) -> None:
        lengths = values.value_lengths().to_numpy(zero_copy_only=False)
        other = lengths != length
        if other.any():
            at = int(np.argmax(other))
            fix = 'pad them, with a tokenizer by padding="max_length"' if axis == 0 else "pad them"
            raise InvalidDataset.at(
                f"{self._place}[{start + at // per_row}]",
                f"expected a list of {length} values as in the rows before, got {lengths[at]}; "
                f"{fix}",
            )

    def _refuse_overflow(self, values: AnyArray, start: int, per_row: int) -> None:
        beyond = values > np.iinfo(np.int64).max
        if beyond.any():
            at = int(np.argmax(beyond))
            raise InvalidDataset.at(
                f"{self._place}[{start + at // per_row}]",
                f"expected integers of 64 bits, got {values[at]}",
            )


def number_column(record_batch: Any, name: str, start: int, *, location: str) -> AnyArray:  # noqa: ANN401 - as above
    """Return a column of numbers, none of them missing."""
    column = record_batch.column(name)
    _refuse_null(column, "a number", start, 1, place=f"{location}.{name}")
    values: AnyArray = column.to_numpy(zero_copy_only=False)
    return values


def _stacked(
    record_batch: Any,  # noqa: ANN401 - as above
    columns: Sequence[str],
    dtype: str,
    *,
    start: int,
    location: str,
) -> AnyArray:
    stacked: AnyArray = np.empty((len(columns), record_batch.num_rows), dtype=dtype)
    for row, name in zip(stacked, columns, strict=True):
        row[:] = number_column(record_batch, name, start, location=location)
    # Columns become rows of samples, contiguous as those of an .npz.
    return np.ascontiguousarray(stacked.T)


def _refuse_null(values: Any, expected: str, start: int, per_row: int, *, place: str) -> None:  # noqa: ANN401 - as above
    if values.null_count:
        at = int(np.argmax(values.is_null().to_numpy(zero_copy_only=False)))
        raise InvalidDataset.at(
            f"{place}[{start + at // per_row}]", f"expected {expected}, got an empty cell"
        )

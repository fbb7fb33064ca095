"""Tables: from streams of Arrow record batches to batches of samples."""

import math
from collections.abc import Iterator, Mapping, Sequence
from importlib.util import find_spec
from typing import Any, Protocol

import numpy as np

from howsure.statistics.arrays import Labels
from service.child.reading.checks import (
    SUPPLIED_PREFIX,
    Places,
    check_batch_size,
    check_inputs,
    check_outputs,
    check_sizes,
    check_supplied,
    is_finite,
)
from service.child.reading.table_columns import LABEL, TableColumns
from service.child.reading.table_labels import (
    ReadColumns,
    count_rows,
    number_column,
    read_indices,
    refuse_null,
)
from service.errors import UnsupportedFormat
from service.runner.messages.dataset import AnyArray, ArrayInfo, Batch, DatasetInfo
from service.runner.messages.reading import SetContext

# Rows that are read at a time have about as many bytes, those of one row if it alone has more.
READ_BYTES = 4 * 1024**2
ANY_ROWS = 2**31


def require_pyarrow(location: str) -> None:
    """Refuse a table where the extra that reads it is not installed."""
    if find_spec("pyarrow") is None:
        raise UnsupportedFormat.at(
            location,
            "expected arrays in .npz or .npy, or pictures in .zip or .tar; to read .csv and "
            ".parquet the server needs `pip install howsure[tables]`",
        )


class ArraySource(Protocol):
    """One array of a set, made of one or more columns.

    Attributes
    ----------
    columns
        What is read of the file for it.
    dtype, shape
        The numpy name of its dtype, and the shape of one sample.
    most_rows
        Rows that may be read at a time, for the memory that takes.
    """

    columns: Sequence[str]
    dtype: str
    shape: tuple[int, ...]
    most_rows: int

    def read(self, record_batch: Any, start: int, target: AnyArray) -> None:  # noqa: ANN401 - pyarrow has no types
        """Write the rows of a pyarrow.RecordBatch to ``target``; the first is row ``start``."""


class NumberColumns:
    """Columns of one number a row, side by side in the order they are given in."""

    def __init__(
        self, columns: Sequence[str], dtype: str, ctx: SetContext, *, most_rows: int = ANY_ROWS
    ) -> None:
        self.columns = columns
        self.dtype = dtype
        self.shape: tuple[int, ...] = (len(columns),)
        self.most_rows = most_rows
        self._ctx = ctx

    def read(self, record_batch: Any, start: int, target: AnyArray) -> None:  # noqa: ANN401 - as above
        """Write features of shape (rows, columns)."""
        stacked = np.empty(target.shape[::-1], self.dtype)
        for column, name in zip(stacked, self.columns, strict=True):
            column[:] = number_column(record_batch, name, start, self._ctx)
        target[:] = stacked.T
        if not is_finite(target):
            self._refuse(target, start)

    def _refuse(self, target: AnyArray, start: int) -> None:
        for name, values in zip(self.columns, target.T, strict=True):
            check_inputs(values, place=self._ctx.place(name), start=start)


class OutputColumns(NumberColumns):
    """A column for each class."""

    def __init__(self, columns: TableColumns, dtype: str, ctx: SetContext) -> None:
        super().__init__(columns.classes, dtype, ctx)
        self._kind = columns.kind
        self._places = Places(ctx.location, columns.kind, columns.prefix)

    def read(self, record_batch: Any, start: int, target: AnyArray) -> None:  # noqa: ANN401 - as above
        """Write outputs of shape (rows, classes)."""
        super().read(record_batch, start, target)
        check_outputs(target, kind=self._kind, places=self._places, start=start)

    def _refuse(self, target: AnyArray, start: int) -> None:
        """Leave it to the rules of outputs."""


class ListColumn:
    """A column of lists, of lists of lists and so on, all of one shape."""

    def __init__(self, name: str, dtype: str, shape: tuple[int, ...], ctx: SetContext) -> None:
        self.columns: Sequence[str] = [name]
        self.dtype = dtype
        self.shape = shape
        self.most_rows = max(1, READ_BYTES // (8 * math.prod(shape)))
        self._name = name
        self._ctx = ctx

    def read(self, record_batch: Any, start: int, target: AnyArray) -> None:  # noqa: ANN401 - as above
        """Write the values of the lists, shape (rows, *lengths)."""
        values, per_row = record_batch.column(self._name), 1
        for axis, length in enumerate(self.shape):
            self._refuse_null(values, "a list", start, per_row)
            lengths = values.value_lengths().to_numpy(zero_copy_only=False)
            other = np.flatnonzero(lengths != length)
            if other.size:
                fix = ', with a tokenizer by padding="max_length"' if axis == 0 else ""
                raise self._invalid(
                    f"expected a list of {length} values as in the rows before, got "
                    f"{lengths[other[0]]}; pad them{fix}",
                    start + other[0] // per_row,
                )
            values = values.flatten()
            per_row *= length
        self._refuse_null(values, "a number", start, per_row)
        found: AnyArray = values.to_numpy(zero_copy_only=False)
        beyond = np.flatnonzero(found > np.iinfo(np.int64).max if found.dtype.kind == "u" else ())
        if beyond.size:
            raise self._invalid(
                f"expected integers of 64 bits, got {found[beyond[0]]}",
                start + beyond[0] // per_row,
            )
        target[:] = found.reshape(target.shape)
        check_inputs(target, place=self._ctx.place(self._name), start=start)

    def _refuse_null(self, values: Any, expected: str, start: int, per_row: int) -> None:  # noqa: ANN401 - as above
        refuse_null(values, expected, start, per_row, self._name, self._ctx)

    def _invalid(self, message: str, row: int) -> Exception:
        return self._ctx.invalid(message, self._name, row)


class TableSet:
    """A table of outputs or of inputs; every pass over it reads its file anew."""

    def __init__(
        self,
        info: DatasetInfo,
        sources: Mapping[str, ArraySource],
        labels: Labels | None,
        read_columns: ReadColumns,
        ctx: SetContext,
    ) -> None:
        self.info = info
        self._sources = sources
        self._labels = np.zeros(info.n_samples, np.int64) if labels is None else labels
        self._read_columns = read_columns
        self._ctx = ctx
        check_sizes(info, ctx)

    def labels(self) -> Labels:
        """Return the classes of all samples: zeros, which mean nothing, of an unlabelled set."""
        return self._labels

    def batches(self, size: int) -> Iterator[Batch]:
        """Yield all samples in their order, ``size`` at a time."""
        check_batch_size(size)
        columns = [column for source in self._sources.values() for column in source.columns]
        columns += [f"{SUPPLIED_PREFIX}{name}" for name in self.info.supplied]
        most = min(size, *(source.most_rows for source in self._sources.values()))
        reader = self._read_columns(list(dict.fromkeys(columns)), most)
        pending = None
        for start in range(0, self.info.n_samples, size):
            batch = self._empty(start, min(size, self.info.n_samples - start))
            stop, row = start + len(batch.labels), start
            while row < stop:
                if pending is None or not pending.num_rows:
                    pending = next(reader, None)
                    if pending is None:
                        raise self._miscounted(row)
                part = pending.slice(0, stop - row)
                pending = pending.slice(part.num_rows)
                self._fill(batch.rows(slice(row - start, row - start + part.num_rows)), part)
                row += part.num_rows
            yield batch
            del batch
        left = (0 if pending is None else pending.num_rows) + sum(b.num_rows for b in reader)
        if left:
            raise self._miscounted(self.info.n_samples + left)

    def _empty(self, start: int, n_rows: int) -> Batch:
        sources = self._sources.items()
        return Batch(
            start,
            {name: np.empty((n_rows, *source.shape), source.dtype) for name, source in sources},
            self._labels[start : start + n_rows],
            {name: np.empty(n_rows) for name in self.info.supplied},
        )

    def _fill(self, target: Batch, part: Any) -> None:  # noqa: ANN401 - as above
        for name, source in self._sources.items():
            source.read(part, target.start, target.arrays[name])
        for name, values in target.supplied.items():
            column = f"{SUPPLIED_PREFIX}{name}"
            found = number_column(part, column, target.start, self._ctx)
            values[:] = check_supplied(found, place=self._ctx.place(column), start=target.start)

    def _miscounted(self, n_rows: int) -> Exception:
        return self._ctx.invalid(
            f"claims {self.info.n_samples} rows, but holds {n_rows}; send the file again"
        )


def array_infos(sources: Mapping[str, ArraySource], n_samples: int) -> dict[str, ArrayInfo]:
    """Return dtypes and shapes of the arrays that sources bring."""
    return {
        name: ArrayInfo(source.dtype, (n_samples, *source.shape))
        for name, source in sources.items()
    }


def open_outputs(
    columns: TableColumns,
    read_columns: ReadColumns,
    ctx: SetContext,
    *,
    dtype: str,
    file_format: str,
) -> TableSet:
    """Return a table of outputs, its rows counted and its labels checked."""
    sources: dict[str, ArraySource] = {columns.kind: OutputColumns(columns, dtype, ctx)}
    if columns.labelled:
        labels = read_indices(LABEL, read_columns, ctx, n_classes=columns.n_classes).labels
        n_samples = len(labels)
    else:
        labels, n_samples = None, count_rows(columns.classes[0], read_columns, ctx)
    info = DatasetInfo(
        kind=columns.kind,
        format=file_format,
        arrays=array_infos(sources, n_samples),
        n_samples=n_samples,
        n_classes=columns.n_classes,
        supplied=columns.supplied,
        labelled=columns.labelled,
    )
    return TableSet(info, sources, labels, read_columns, ctx)

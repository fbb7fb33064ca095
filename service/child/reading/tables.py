"""Tables as sets of samples: Arrow record batches become batches of arrays."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

import numpy as np

from howsure.statistics.arrays import Labels
from service.child.reading.checks import (
    SUPPLIED_PREFIX,
    check_inputs,
    check_sizes,
    check_supplied,
    is_finite,
    may_lack_values,
)
from service.child.reading.class_indices import ClassLabels
from service.child.reading.columns import (
    TableColumn,
    TableColumns,
    TableKind,
    labels_are_names,
    refuse_null,
)
from service.child.reading.output_checks import check_outputs
from service.child.reading.sampling_design import read_design
from service.runner.messages.dataset import (
    DESIGN_DTYPES,
    AnyArray,
    ArrayInfo,
    Batch,
    ColumnLabels,
    DatasetInfo,
)
from service.runner.messages.reading import SetContext

# Given column names and a number of rows, stream the table as pyarrow.RecordBatch objects of
# about that many rows. pyarrow has no types, hence Any.
ReadColumns = Callable[[Sequence[str], int], Iterator[Any]]

# About this many bytes of rows are read at a time, and at least one row.
READ_BYTES = 4 * 1024**2
ANY_ROWS = 2**31


class ArraySource(Protocol):
    """One array of a set, read from one or more columns.

    Attributes
    ----------
    columns
        The columns of the file that it is read from.
    dtype, shape
        The numpy name of its dtype, and the shape of one sample.
    most_rows
        How many rows may be read at a time, which limits memory.
    """

    columns: Sequence[str]
    dtype: str
    shape: tuple[int, ...]
    most_rows: int

    def read(self, record_batch: Any, start: int, target: AnyArray) -> None:  # noqa: ANN401 - pyarrow has no types
        """Write the rows of a pyarrow.RecordBatch to ``target``; the first is row ``start``."""


class NumberColumns:
    """Columns of one number per row, side by side in the given order."""

    def __init__(
        self, columns: Sequence[TableColumn], kind: TableKind, dtype: str, ctx: SetContext
    ) -> None:
        self.columns: Sequence[str] = [column.name for column in columns]
        self.dtype = dtype
        self.shape: tuple[int, ...] = (len(columns),)
        self.most_rows = ANY_ROWS if kind != "inputs" else max(1, READ_BYTES // (8 * len(columns)))
        self._kind = kind
        self._ctx = ctx

    def read(self, record_batch: Any, start: int, target: AnyArray) -> None:  # noqa: ANN401 - as above
        """Write numbers of shape (rows, columns)."""
        stacked = np.empty(target.shape[::-1], self.dtype)
        may_lack = self._kind == "inputs" and may_lack_values(target.shape, self.dtype)
        for column, name in zip(stacked, self.columns, strict=True):
            column[:] = number_column(record_batch, name, start, self._ctx, may_lack=may_lack)
        target[:] = stacked.T
        kind, place = self._kind, self._ctx.place
        if kind != "inputs":
            prefix = self.columns[0].partition("_")[0] + "_"
            check_outputs(
                target,
                kind=kind,
                place=place(f"{prefix}*"),
                start=start,
                cell_place=lambda row, column: place(self.columns[column], row),
            )
        elif not is_finite(target):
            for name, values in zip(self.columns, target.T, strict=True):
                check_inputs(values, place=place(name), start=start, may_lack=may_lack)


class BinaryColumn:
    """A column of the probability of class 1, read as the probabilities of both classes."""

    dtype = "float64"
    shape: tuple[int, ...] = (2,)
    most_rows = ANY_ROWS

    def __init__(self, name: str, ctx: SetContext) -> None:
        self.columns: Sequence[str] = [name]
        self._ctx = ctx

    def read(self, record_batch: Any, start: int, target: AnyArray) -> None:  # noqa: ANN401 - as above
        """Write probabilities of shape (rows, 2)."""
        (name,) = self.columns
        values = number_column(record_batch, name, start, self._ctx)
        bad = ~((values >= 0) & (values <= 1))
        if bad.any():
            row = int(np.argmax(bad))
            raise self._ctx.invalid(
                f"expected a probability from 0 to 1, that of class 1, got {values[row]}; divide "
                "percentages by 100, and send logits as `logit_0` and `logit_1`",
                name,
                start + row,
            )
        target[:, 1] = values
        target[:, 0] = 1.0 - target[:, 1]


class ListColumn:
    """A column of lists, which may be nested, all of one shape."""

    def __init__(
        self, name: str, dtype: str, shape: tuple[int, ...], kind: TableKind, ctx: SetContext
    ) -> None:
        self.columns: Sequence[str] = [name]
        self.dtype = dtype
        self.shape = shape
        self.most_rows = max(1, READ_BYTES // (8 * math.prod(shape)))
        self._name = name
        self._kind = kind
        self._ctx = ctx

    def read(self, record_batch: Any, start: int, target: AnyArray) -> None:  # noqa: ANN401 - as above
        """Write the values of the lists, shape (rows, *lengths)."""
        values, per_row = record_batch.column(self._name), 1
        for axis, length in enumerate(self.shape):
            refuse_null(values, "a list", start, self._name, self._ctx, per_row=per_row)
            lengths = values.value_lengths().to_numpy(zero_copy_only=False)
            other = np.flatnonzero(lengths != length)
            if other.size:
                fix = ', with a tokenizer by padding="max_length"' if axis == 0 else ""
                raise self._ctx.invalid(
                    f"expected a list of {length} values as in the rows before, got "
                    f"{lengths[other[0]]}; pad them{fix}",
                    self._name,
                    start + other[0] // per_row,
                )
            values = values.flatten()
            per_row *= length
        refuse_null(values, "a number", start, self._name, self._ctx, per_row=per_row)
        found: AnyArray = values.to_numpy(zero_copy_only=False)
        beyond = np.flatnonzero(found > np.iinfo(np.int64).max if found.dtype.kind == "u" else ())
        if beyond.size:
            raise self._ctx.invalid(
                f"expected integers of 64 bits, got {found[beyond[0]]}",
                self._name,
                start + beyond[0] // per_row,
            )
        target[:] = found.reshape(target.shape)
        place = self._ctx.place(self._name)
        if self._kind == "inputs":
            check_inputs(target, place=place, start=start)
        else:
            check_outputs(target, kind=self._kind, place=place, start=start)


class TableSet:
    """A table of outputs or of inputs; every pass over it reads its file anew.

    ``labels`` are the labels of all samples, or their number if the set has none.
    """

    def __init__(
        self,
        columns: TableColumns,
        sources: Mapping[str, ArraySource],
        labels: ClassLabels | int,
        read_columns: ReadColumns,
        ctx: SetContext,
        *,
        file_format: str,
    ) -> None:
        self._sources = sources
        self._read_columns = read_columns
        self._ctx = ctx
        found = ClassLabels(np.zeros(labels, np.int64)) if isinstance(labels, int) else labels
        self._labels = found.labels
        n_samples = len(found.labels)
        self.info = DatasetInfo(
            kind=columns.kind,
            format=file_format,
            arrays={
                name: ArrayInfo(source.dtype, (n_samples, *source.shape))
                for name, source in sources.items()
            },
            n_samples=n_samples,
            n_classes=columns.n_classes,
            supplied=columns.supplied,
            labelled=not isinstance(labels, int),
            class_map=found.class_map
            if columns.class_names is None
            else {name: index for index, name in enumerate(columns.class_names)},
            is_numbered_by_name=found.is_numbered_by_name,
            labels_of_named_columns=_labels_of(columns, ctx),
            columns={
                name: tuple(column.name for column in chosen)
                for name, chosen in columns.arrays.items()
                if columns.kind == "inputs" and chosen[0].kind == "numbers"
            },
            notes=(*columns.notes, *found.notes),
            design=columns.design,
            possible_features=columns.possible_features,
        )
        check_sizes(self.info, ctx)

    def labels(self) -> Labels:
        """Return the classes of all samples, zeros without a meaning if the set is unlabelled."""
        return self._labels

    def batches(self, size: int) -> Iterator[Batch]:
        """Yield all samples in their order, ``size`` at a time."""
        names = [column for source in self._sources.values() for column in source.columns]
        names += [f"{SUPPLIED_PREFIX}{name}" for name in self.info.supplied]
        names += self.info.design
        most = min(size, *(source.most_rows for source in self._sources.values()))
        row, batch = 0, self._empty(0, size)
        for part in _cut(self._read_columns(list(dict.fromkeys(names)), most), size):
            if row + part.num_rows > self.info.n_samples:
                raise self._miscounted("more")
            self._fill(
                batch.rows(slice(row - batch.start, row - batch.start + part.num_rows)), part
            )
            row += part.num_rows
            if row == batch.start + len(batch.labels):
                yield batch
                del batch
                batch = self._empty(row, size)
        if row < self.info.n_samples:
            raise self._miscounted("fewer")

    def _empty(self, start: int, size: int) -> Batch:
        labels = self._labels[start : start + size]
        return Batch(
            start,
            {
                name: np.empty((len(labels), *source.shape), source.dtype)
                for name, source in self._sources.items()
            },
            labels,
            {name: np.empty(len(labels)) for name in self.info.supplied},
            {name: np.empty(len(labels), DESIGN_DTYPES[name]) for name in self.info.design},
        )

    def _fill(self, target: Batch, part: Any) -> None:  # noqa: ANN401 - as above
        for name, source in self._sources.items():
            source.read(part, target.start, target.arrays[name])
        for name, values in target.supplied.items():
            column = f"{SUPPLIED_PREFIX}{name}"
            found = number_column(part, column, target.start, self._ctx)
            values[:] = check_supplied(found, place=self._ctx.place(column), start=target.start)
        for name, values in target.design.items():
            values[:] = read_design(part, name, target.start, self._ctx)

    def _miscounted(self, found: str) -> Exception:
        return self._ctx.invalid(
            f"claims {self.info.n_samples} rows, but has {found}; write the file again"
        )


def _labels_of(columns: TableColumns, ctx: SetContext) -> ColumnLabels | None:
    if not columns.has_named_classes or columns.label is None:
        return None
    return "names" if labels_are_names(columns, ctx) else "positions"


def _cut(batches: Iterator[Any], size: int) -> Iterator[Any]:
    """Yield the rows of record batches in parts that cross no multiple of ``size``."""
    row = 0
    for rows in batches:
        at = 0
        while at < rows.num_rows:
            part = rows.slice(at, size - row % size)
            yield part
            at += part.num_rows
            row += part.num_rows


def guarded(
    open_reader: Callable[[], Iterator[Any]], guard: Callable[[], AbstractContextManager[None]]
) -> Iterator[Any]:
    """Yield the batches of a pyarrow reader; ``guard`` sees its exceptions, not the consumer's."""
    with guard():
        reader = open_reader()
    while True:
        with guard():
            record_batch = next(reader, None)
        if record_batch is None:
            return
        yield record_batch


def number_column(
    record_batch: Any,  # noqa: ANN401 - pyarrow has no types
    name: str,
    start: int,
    ctx: SetContext,
    *,
    may_lack: bool = False,
) -> AnyArray:
    """Return a column of numbers; empty cells are refused, or with ``may_lack`` become NaN."""
    column = record_batch.column(name)
    if may_lack and column.null_count:
        column = column.cast("float64", safe=False)
    else:
        refuse_null(column, "a number", start, name, ctx)
    values: AnyArray = column.to_numpy(zero_copy_only=False)
    return values

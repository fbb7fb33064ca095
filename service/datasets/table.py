"""Tables of outputs: from streams of Arrow record batches to batches of samples."""

from collections.abc import Callable, Iterator, Sequence
from importlib.util import find_spec
from types import TracebackType
from typing import Any, Self

import numpy as np

from service.core.arrays import Floats, Labels
from service.datasets.checks import Places, check_labels, check_n_samples, check_outputs
from service.datasets.dataset import AnyArray, ArrayInfo, Batch, DatasetInfo
from service.datasets.limits import DatasetLimits
from service.datasets.supplied import SUPPLIED_PREFIX, check_supplied
from service.datasets.table_columns import LABEL, TableColumns
from service.datasets.table_slice import TableSlice, resized
from service.errors import InvalidDataset, UnsupportedFormat

LABELS_PER_READ = 65_536

# Given column names and a number of rows, stream the table as pyarrow.RecordBatch objects of
# about that many rows. pyarrow is optional and has no types, hence Any.
ReadColumns = Callable[[Sequence[str], int], Iterator[Any]]


def require_pyarrow(location: str) -> None:
    """Refuse a table where the extra that reads it is not installed."""
    if find_spec("pyarrow") is None:
        raise UnsupportedFormat.at(
            location,
            "expected .npz, the one format read here; to read .csv and .parquet the server "
            "needs `pip install howsure[tables]`",
        )


def count_samples(
    read_columns: ReadColumns, columns: TableColumns, *, location: str, limits: DatasetLimits
) -> int:
    """Return the number of rows, having checked each label and held it to the limit."""
    n_samples = 0
    for labels in _label_slices(read_columns, columns, location=location, limits=limits):
        n_samples += len(labels)
        if n_samples > limits.max_samples:
            break
    check_n_samples(n_samples, place=location, limits=limits)
    return n_samples


class TableDataset:
    """A table of outputs; every pass over it reads its file anew."""

    def __init__(
        self,
        columns: TableColumns,
        read_columns: ReadColumns,
        *,
        n_samples: int,
        dtype: str,
        file_format: str,
        location: str,
        limits: DatasetLimits,
    ) -> None:
        self.info = DatasetInfo(
            kind=columns.kind,
            format=file_format,
            arrays={columns.kind: ArrayInfo(dtype, (n_samples, columns.n_classes))},
            n_samples=n_samples,
            n_classes=columns.n_classes,
            supplied=columns.supplied,
            labelled=columns.labelled,
        )
        self._columns = columns
        self._read_columns = read_columns
        self._location = location
        self._limits = limits

    def labels(self) -> Labels:
        """Return the classes of all samples: zeros, which mean nothing, of an unlabelled set."""
        if not self.info.labelled:
            return np.zeros(self.info.n_samples, np.int64)
        labels = np.concatenate(
            list(
                _label_slices(
                    self._read_columns,
                    self._columns,
                    location=self._location,
                    limits=self._limits,
                )
            )
        )
        self._check_count(len(labels))
        return labels

    def batches(self, size: int) -> Iterator[Batch]:
        """Yield all samples in their order, ``size`` at a time."""
        if size < 1:
            raise ValueError(f"size must be at least 1, not {size}")
        start = 0
        for found in resized(self._slices(size), size):
            arrays: dict[str, AnyArray] = {self._columns.kind: found.outputs}
            yield Batch(start, arrays, found.labels, found.supplied)
            start += len(found)
        self._check_count(start)

    def close(self) -> None:
        """Let go of the file, which is open only while it is read."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def _slices(self, size: int) -> Iterator[TableSlice]:
        names = self._columns.classes
        places = Places(self._location, self._columns.kind, self._columns.prefix)
        dtype = self.info.arrays[self._columns.kind].dtype
        start = 0
        for record_batch in self._read_columns(self._columns.all, size):
            labels = _checked_labels(
                record_batch, self._columns, start, location=self._location, limits=self._limits
            )
            outputs: AnyArray = np.empty((len(names), len(labels)), dtype=dtype)
            for row, name in zip(outputs, names, strict=True):
                row[:] = _column(record_batch, name, start, location=self._location)
            # Columns become rows of samples, contiguous as those of an .npz.
            outputs = np.ascontiguousarray(outputs.T)
            check_outputs(outputs, kind=self._columns.kind, places=places, start=start)
            yield TableSlice(labels, outputs, self._supplied(record_batch, start))
            start += len(labels)

    def _supplied(self, record_batch: Any, start: int) -> dict[str, Floats]:  # noqa: ANN401 - pyarrow has no types
        supplied: dict[str, Floats] = {}
        for name in self._columns.supplied:
            column = f"{SUPPLIED_PREFIX}{name}"
            values = _column(record_batch, column, start, location=self._location)
            place = f"{self._location}.{column}"
            supplied[name] = check_supplied(values, place=place, start=start)
        return supplied

    def _check_count(self, n_rows: int) -> None:
        if n_rows != self.info.n_samples:
            raise InvalidDataset.at(
                self._location,
                f"claims {self.info.n_samples} rows, but holds {n_rows}; send the file again",
            )


def _label_slices(
    read_columns: ReadColumns, columns: TableColumns, *, location: str, limits: DatasetLimits
) -> Iterator[Labels]:
    start = 0
    for record_batch in read_columns([columns.counted], LABELS_PER_READ):
        yield _checked_labels(record_batch, columns, start, location=location, limits=limits)
        start += record_batch.num_rows


def _checked_labels(
    record_batch: Any,  # noqa: ANN401 - as above
    columns: TableColumns,
    start: int,
    *,
    location: str,
    limits: DatasetLimits,
) -> Labels:
    if not columns.labelled:
        return np.zeros(record_batch.num_rows, np.int64)
    return check_labels(
        _column(record_batch, LABEL, start, location=location),
        place=f"{location}.{LABEL}",
        start=start,
        n_classes=columns.n_classes,
        n_allowed=limits.max_classes,
    )


def _column(record_batch: Any, name: str, start: int, *, location: str) -> AnyArray:  # noqa: ANN401 - as above
    column = record_batch.column(name)
    if column.null_count:
        row = start + int(np.argmax(column.is_null().to_numpy(zero_copy_only=False)))
        raise InvalidDataset.at(f"{location}.{name}[{row}]", "expected a number, got an empty cell")
    values: AnyArray = column.to_numpy(zero_copy_only=False)
    return values

"""Tables: from streams of Arrow record batches to batches of samples."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib.util import find_spec
from typing import Any

import numpy as np

from service.core.arrays import Floats, Labels
from service.datasets.checks import check_n_samples
from service.datasets.closed_at_the_end import ClosedAtTheEnd
from service.datasets.dataset import ArrayInfo, Batch, DatasetInfo
from service.datasets.limits import DatasetLimits
from service.datasets.supplied import SUPPLIED_PREFIX, check_supplied
from service.datasets.table_labels import LabelColumn
from service.datasets.table_slice import TableSlice, resized
from service.datasets.table_sources import ArraySource, number_column
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
            "expected arrays in .npz or .npy, or pictures in .zip or .tar; to read .csv and "
            ".parquet the server needs `pip install howsure[tables]`",
        )


def count_samples(
    read_columns: ReadColumns,
    labels: LabelColumn | None,
    counted: str,
    *,
    location: str,
    limits: DatasetLimits,
) -> int:
    """Return the number of rows, having checked each label and held it to the limit.

    ``counted`` is the column that tells how many there are, where there are no labels.
    """
    n_samples = 0
    for found in _label_slices(read_columns, labels, counted):
        n_samples += len(found)
        if n_samples > limits.max_samples:
            break
    check_n_samples(n_samples, place=location, limits=limits)
    return n_samples


def array_infos(sources: Mapping[str, ArraySource], n_samples: int) -> dict[str, ArrayInfo]:
    """Return dtypes and shapes of the arrays that sources bring."""
    return {
        name: ArrayInfo(source.dtype, (n_samples, *source.shape))
        for name, source in sources.items()
    }


class TableDataset(ClosedAtTheEnd):
    """A table of outputs or of inputs; every pass over it reads its file anew."""

    def __init__(
        self,
        info: DatasetInfo,
        sources: Mapping[str, ArraySource],
        labels: LabelColumn | None,
        read_columns: ReadColumns,
        *,
        location: str,
    ) -> None:
        self.info = info
        self._sources = sources
        self._labels = labels
        self._read_columns = read_columns
        self._location = location

    def labels(self) -> Labels:
        """Return the classes of all samples: zeros, which mean nothing, of an unlabelled set."""
        if self._labels is None:
            return np.zeros(self.info.n_samples, np.int64)
        slices = _label_slices(self._read_columns, self._labels, self._labels.name)
        labels = np.concatenate(list(slices))
        self._check_count(len(labels))
        return labels

    def batches(self, size: int) -> Iterator[Batch]:
        """Yield all samples in their order, ``size`` at a time."""
        if size < 1:
            raise ValueError(f"size must be at least 1, not {size}")
        start = 0
        for found in resized(self._slices(size), size):
            yield Batch(start, found.arrays, found.labels, found.supplied)
            start += len(found)
        self._check_count(start)

    def _slices(self, size: int) -> Iterator[TableSlice]:
        columns = [] if self._labels is None else [self._labels.name]
        columns += [column for source in self._sources.values() for column in source.columns]
        columns += [f"{SUPPLIED_PREFIX}{name}" for name in self.info.supplied]
        n_rows = min(size, *(source.most_rows for source in self._sources.values()))
        start = 0
        for record_batch in self._read_columns(list(dict.fromkeys(columns)), n_rows):
            yield TableSlice(
                _read_labels(record_batch, self._labels, start),
                {name: source.read(record_batch, start) for name, source in self._sources.items()},
                self._supplied(record_batch, start),
            )
            start += record_batch.num_rows

    def _supplied(self, record_batch: Any, start: int) -> dict[str, Floats]:  # noqa: ANN401 - pyarrow has no types
        supplied: dict[str, Floats] = {}
        for name in self.info.supplied:
            column = f"{SUPPLIED_PREFIX}{name}"
            values = number_column(record_batch, column, start, location=self._location)
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
    read_columns: ReadColumns, labels: LabelColumn | None, counted: str
) -> Iterator[Labels]:
    start = 0
    for record_batch in read_columns([counted], LABELS_PER_READ):
        yield _read_labels(record_batch, labels, start)
        start += record_batch.num_rows


def _read_labels(record_batch: Any, labels: LabelColumn | None, start: int) -> Labels:  # noqa: ANN401 - as above
    if labels is None:
        return np.zeros(record_batch.num_rows, np.int64)
    return labels.read(record_batch, start)

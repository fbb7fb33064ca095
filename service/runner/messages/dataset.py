"""A set of samples, whatever file it lies in: what it says of itself, its labels, its batches."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from howsure.statistics.arrays import Floats, Labels

DatasetKind: TypeAlias = Literal["inputs", "logits", "probabilities"]
AnyArray: TypeAlias = NDArray[Any]

# Of one set; a frame has room for so many beside labels and supplied columns.
MAX_ARRAYS = 900
MAX_RANK = 16
MAX_NAME_LENGTH = 200


@dataclass(frozen=True)
class ArrayInfo:
    """One array of a set: the numpy name of its dtype, and its shape with the samples first."""

    dtype: str
    shape: tuple[int, ...]

    @property
    def row_bytes(self) -> int:
        """Bytes of one sample."""
        return math.prod(self.shape[1:]) * np.dtype(self.dtype).itemsize


@dataclass(frozen=True)
class DatasetInfo:
    """What a file holds, known without reading its values.

    ``arrays`` has what batches bring: the model's inputs by name, or the one array ``logits`` or
    ``probabilities``. ``n_classes`` is known for outputs alone. ``supplied`` names the columns
    ``uncertainty_<name>`` that lie beside them, without the prefix. ``labelled`` is false where the
    file has no labels, which only a caller who does without them gets to see. ``class_map`` has the
    index that each name of a class was given, where the file names its classes;
    ``is_numbered_by_name`` tells that nothing but the order of the names gave it. ``notes`` are
    sentences on what was inferred.
    """

    kind: DatasetKind
    format: str
    arrays: Mapping[str, ArrayInfo]
    n_samples: int
    n_classes: int | None
    supplied: tuple[str, ...]
    labelled: bool
    class_map: Mapping[str, int] | None = None
    is_numbered_by_name: bool = False
    notes: tuple[str, ...] = ()

    @property
    def row_bytes(self) -> int:
        """Bytes of one sample over all arrays, to choose a batch size by."""
        return sum(array.row_bytes for array in self.arrays.values())


@dataclass(frozen=True)
class Batch:
    """Consecutive samples from row ``start`` on; the arrays are the reader's own to keep.

    Labels of an unlabelled set are zeros, which mean nothing. ``supplied`` has the float64 values
    of each column ``uncertainty_<name>`` by its name, finite in float32.
    """

    start: int
    arrays: dict[str, AnyArray]
    labels: Labels
    supplied: dict[str, Floats]

    def rows(self, index: "slice | NDArray[np.int64]") -> "Batch":
        """Return some of the samples; a slice of them as views, numbered on from ``start``."""
        first = (index.start or 0) if isinstance(index, slice) else 0
        return Batch(
            start=self.start + first,
            arrays={name: array[index] for name, array in self.arrays.items()},
            labels=self.labels[index],
            supplied={name: values[index] for name, values in self.supplied.items()},
        )


def join_batches(parts: Sequence[Batch]) -> Batch:
    """Return the samples of all parts as one batch, numbered from 0."""
    first = parts[0]
    return Batch(
        start=0,
        arrays={name: np.concatenate([p.arrays[name] for p in parts]) for name in first.arrays},
        labels=np.concatenate([part.labels for part in parts]),
        supplied={
            name: np.concatenate([p.supplied[name] for p in parts]) for name in first.supplied
        },
    )


class Dataset(Protocol):
    """A set of samples that is open for reading, any number of times over."""

    @property
    def info(self) -> DatasetInfo:
        """What the file holds."""

    def labels(self) -> Labels:
        """Return the classes of all samples: zeros, which mean nothing, of an unlabelled set."""

    def batches(self, size: int) -> Iterator[Batch]:
        """Yield all samples in their order, ``size`` at a time, the last batch maybe fewer.

        Memory holds one batch. Values are checked as they pass: a batch that is yielded is finite.

        Raises
        ------
        InvalidDataset
            If a value breaks a rule or the file is damaged; the violation names array and row.
        """

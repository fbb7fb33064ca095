"""A set of samples in any file format: its description, labels and batches."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from howsure.limits import MAX_NAME_LENGTH
from howsure.outputs import OutputKind
from howsure.statistics.arrays import Floats, Labels
from service.runner.messages.convert import FieldError
from service.runner.messages.frames import Array

# The kind and the array of sets of a score and whether it was right.
PAIRS: Literal["pairs"] = "pairs"
DatasetKind: TypeAlias = Literal["inputs", "pairs"] | OutputKind
AnyArray: TypeAlias = NDArray[Any]
ScoreRange: TypeAlias = tuple[float, float]
ColumnLabels: TypeAlias = Literal["names", "positions"]

# Of one set; a frame has room for so many beside labels and supplied columns.
MAX_ARRAYS = 900
# Of the labels, in sets and in shards.
LABELS = "labels"
# In shards, inputs may have any name, also that of the labels.
ARRAY = "array/"
SUPPLIED = "supplied/"
DESIGN = "design/"
# Types of the columns of a sampling design, by name.
DESIGN_DTYPES = {"weight": "float64", "group": "int64"}
# Of a shard.
MOST_ROWS = 4096
AIMED_BYTES = 2**25


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
    """The content of a file, known without reading its values.

    ``arrays`` are the arrays of batches: the model's inputs by name, or the one array ``logits``,
    ``probabilities`` or ``pairs``. ``n_classes`` is known for outputs and pairs only. ``supplied``
    has the names of the columns ``uncertainty_<name>``, without the prefix. ``labelled`` is false
    if the file has no labels and the caller does not need them. ``class_map`` has the index of each
    class name, if the file names its classes; ``is_numbered_by_name`` tells whether the indices
    follow from the order of the names alone. ``columns`` has the columns of each input of a table
    that holds one number per column. ``notes`` are sentences about what was inferred. ``design``
    names the columns of the sampling design that the file has: ``weight``, ``group``.
    ``possible_features`` are all columns of numbers but the labels, in the order of the file, where
    the name alone gives one of them another use.
    ``score_range`` has the smallest and the largest score of pairs. ``labels_of_named_columns`` is
    known where columns of outputs have the names of classes: labels are these, or their positions.
    ``texts`` has those of each column of text that is not read, where they are few.
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
    columns: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    design: tuple[str, ...] = ()
    possible_features: tuple[str, ...] = ()
    score_range: ScoreRange | None = None
    labels_of_named_columns: ColumnLabels | None = None
    texts: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def row_bytes(self) -> int:
        """Bytes of one sample over all arrays."""
        return sum(array.row_bytes for array in self.arrays.values())


def is_word(text: str) -> bool:
    """Tell whether a text of a table can be stored and shown: the name of a column, or a cell."""
    return 0 < len(text) <= MAX_NAME_LENGTH and text.isprintable()


@dataclass(frozen=True)
class Batch:
    """Consecutive samples from row ``start`` on; the caller may keep the arrays.

    Labels of an unlabelled set are meaningless zeros. ``supplied`` has the float64 values of each
    column ``uncertainty_<name>`` by name, finite in float32. ``design`` has the float64 weights and
    the int64 codes of groups, if the set has them.
    """

    start: int
    arrays: dict[str, AnyArray]
    labels: Labels
    supplied: dict[str, Floats]
    design: dict[str, AnyArray] = field(default_factory=dict)

    def rows(self, index: "slice | NDArray[np.int64]") -> "Batch":
        """Return some of the samples; a slice of them as views, numbered on from ``start``."""
        first = (index.start or 0) if isinstance(index, slice) else 0
        tensors = batch_tensors(self, labelled=True)
        some = {name: array[index] for name, array in tensors.items()}
        return batch_of(some, start=self.start + first)


def join_batches(parts: Sequence[Batch]) -> Batch:
    """Return the samples of all parts as one batch, numbered from 0."""
    tensors = [batch_tensors(part, labelled=True) for part in parts]
    return batch_of({name: np.concatenate([t[name] for t in tensors]) for name in tensors[0]})


class Dataset(Protocol):
    """A set of samples that is open and can be read any number of times."""

    @property
    def info(self) -> DatasetInfo:
        """The content of the file."""

    def labels(self) -> Labels:
        """Return the labels of all samples; meaningless zeros for an unlabelled set."""

    def batches(self, size: int) -> Iterator[Batch]:
        """Yield all samples in order, ``size`` at a time; the last batch may have fewer.

        Memory holds one batch. Values are checked here: a batch that is yielded is finite.

        Raises
        ------
        InvalidDataset
            If a value breaks a rule or the file is damaged; the violation names array and row.
        """


def batch_tensors(batch: Batch, *, labelled: bool) -> dict[str, Array]:
    """Return the arrays of samples by their names in a frame."""
    tensors = {f"{ARRAY}{name}": array for name, array in batch.arrays.items()}
    tensors |= {f"{SUPPLIED}{name}": values for name, values in batch.supplied.items()}
    tensors |= {f"{DESIGN}{name}": values for name, values in batch.design.items()}
    return tensors | ({LABELS: batch.labels} if labelled else {})


def batch_of(tensors: Mapping[str, Array], *, start: int = 0) -> Batch:
    """Return the samples of a frame's arrays; labels are zeros where it has none.

    Raises
    ------
    FieldError
        If there are none.
    """
    arrays = with_prefix(ARRAY, tensors)
    if not arrays or not all(array.ndim for array in tensors.values()):
        raise FieldError("a set without rows")
    n_rows = len(next(iter(arrays.values())))
    return Batch(
        start=start,
        arrays=arrays,
        labels=tensors.get(LABELS, np.zeros(n_rows, np.int64)),
        supplied=with_prefix(SUPPLIED, tensors),
        design=with_prefix(DESIGN, tensors),
    )


def with_prefix(prefix: str, tensors: Mapping[str, Array]) -> dict[str, Array]:
    """Return the arrays whose names begin so, under the rest of their names."""
    return {
        name.removeprefix(prefix): array
        for name, array in tensors.items()
        if name.startswith(prefix)
    }


def shard_rows(info: DatasetInfo) -> int:
    """Return how many samples of a set go into one shard: a power of two, by their size alone.

    Models run powers of two of rows at a time: none of their runs spans two shards.
    """
    most = min(AIMED_BYTES // max(info.row_bytes, 1), MOST_ROWS)
    return 1 << (max(most, 1).bit_length() - 1)

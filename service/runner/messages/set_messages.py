"""The messages between the service and the process that reads a set: READ and ROWS.

READ opens all sets of one upload; its answer describes each, with its labels and its first rows.
ROWS asks for the next rows of one of them; its answer is a shard.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import chain, islice
from pathlib import Path
from typing import Annotated, Self

from msgspec import Meta

from howsure.statistics.arrays import Labels
from service.runner.messages.convert import NotNegative
from service.runner.messages.dataset import (
    MAX_ARRAYS,
    Batch,
    DatasetInfo,
    batch_of,
    batch_tensors,
    with_prefix,
)
from service.runner.messages.frames import Array
from service.runner.messages.limits import MEBIBYTE, DatasetLimits
from service.runner.messages.packed import MANY, MAX_NAMES_BYTES, checked, packed
from service.runner.messages.reading import AS_IT_IS, Reading
from service.runner.messages.sandbox_rules import SandboxRules

TRIAL_ROWS = 256
# Fewer for large rows: the model's input may take four times as much, and its layers more.
TRIAL_BYTES = 16 * MEBIBYTE
LEAST_TRIAL_ROWS = 32
MOST_TRIAL_BYTES = 256 * MEBIBYTE

_INFO = "info"
_NAMES = "names"
_LABELS = "all_labels"


@dataclass(frozen=True)
class SetToRead:
    """The file of a set, its name in errors, and its options."""

    path: Path
    location: str
    reading: Reading = AS_IT_IS
    labels_required: bool = True
    least_samples: int = 1


@dataclass(frozen=True)
class ReadRequest:
    """The sets of one upload, which are opened together."""

    sets: tuple[SetToRead, ...]
    limits: DatasetLimits
    sandbox: SandboxRules


@dataclass(frozen=True)
class _Names:
    """The fields of `DatasetInfo` with names of all classes or columns.

    ``columns`` are those of all inputs, ``n_columns`` how many of them each input has: in lists by
    input, their number would have no bound. Classes are lists, too: a large object takes long.
    """

    classes: Annotated[tuple[str, ...], MANY] | None
    indices: Annotated[tuple[int, ...], MANY]
    possible_features: Annotated[tuple[str, ...], MANY]
    columns: Annotated[tuple[str, ...], MANY]
    n_columns: Annotated[Mapping[str, NotNegative], Meta(max_length=MAX_ARRAYS)]


@dataclass(frozen=True)
class OpenedSet:
    """An opened set as the reader describes it; ``labels`` is None for an unlabelled set."""

    info: DatasetInfo
    labels: Labels | None
    trial: Batch

    def as_tensors(self, position: int) -> dict[str, Array]:
        """Return the arrays of a frame; ``position`` is that of the set in its upload."""
        tensors = {
            f"trial/{name}": array
            for name, array in batch_tensors(self.trial, labelled=self.info.labelled).items()
        }
        info = self.info
        tensors[_INFO] = packed(replace(info, class_map=None, columns={}, possible_features=()))
        columns = tuple(chain.from_iterable(info.columns.values()))
        n_columns = {name: len(of) for name, of in info.columns.items()}
        classes = None if info.class_map is None else tuple(info.class_map)
        indices = tuple((info.class_map or {}).values())
        names = _Names(classes, indices, info.possible_features, columns, n_columns)
        tensors[_NAMES] = packed(names)
        if self.labels is not None:
            tensors[_LABELS] = self.labels
        return {f"{position}/{name}": array for name, array in tensors.items()}

    @classmethod
    def of(cls, tensors: Mapping[str, Array], position: int) -> Self:
        """Return one set of an answer.

        Raises
        ------
        FieldError
            If it is malformed; `service.runner.messages.set_checks` checks its content.
        """
        own = with_prefix(f"{position}/", tensors)
        names = checked(own, _NAMES, _Names, most_bytes=MAX_NAMES_BYTES)
        classes, columns = names.classes, iter(names.columns)
        class_map = None if classes is None else dict(zip(classes, names.indices, strict=False))
        return cls(
            info=replace(
                checked(own, _INFO, DatasetInfo),
                class_map=class_map,
                possible_features=names.possible_features,
                columns={name: tuple(islice(columns, n)) for name, n in names.n_columns.items()},
            ),
            labels=own.get(_LABELS),
            trial=batch_of(with_prefix("trial/", own)),
        )


def trial_rows(info: DatasetInfo) -> int:
    """Return the number of trial rows of a set."""
    row_bytes = max(info.row_bytes, 1)
    most = max(LEAST_TRIAL_ROWS, TRIAL_BYTES // row_bytes)
    return min(TRIAL_ROWS, most, max(1, MOST_TRIAL_BYTES // row_bytes))


def reading_of(start: int, n_rows: int) -> str:
    """Return the operation on these rows, for messages."""
    return f"Reading rows {start}-{start + n_rows - 1}"

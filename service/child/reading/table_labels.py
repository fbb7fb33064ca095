"""The labels of a table: class indices, or names of classes; all of them are read at once."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from howsure.statistics.arrays import Labels
from service.child.reading.checks import check_labels, check_n_samples
from service.child.reading.class_indices import NamedLabels, class_indices
from service.runner.messages.dataset import MAX_NAME_LENGTH, AnyArray
from service.runner.messages.reading import SetContext

LABELS_PER_READ = 65_536

# Given column names and a number of rows, stream the table as pyarrow.RecordBatch objects of
# about that many rows. pyarrow is optional and has no types, hence Any.
ReadColumns = Callable[[Sequence[str], int], Iterator[Any]]

# The key of the schema's metadata under which the library `datasets` keeps its own types.
_DATASETS_KEY = b"huggingface"


@dataclass(frozen=True)
class TableLabels:
    """All labels of a table, and what indices the names of their classes have."""

    labels: Labels
    class_map: Mapping[str, int] | None = None
    is_numbered_by_name: bool = False
    notes: tuple[str, ...] = ()


def read_indices(
    name: str,
    read_columns: ReadColumns,
    ctx: SetContext,
    *,
    n_classes: int | None = None,
    names: Sequence[str] | None = None,
) -> TableLabels:
    """Read labels that are class indices, ``names`` being what the file calls the classes.

    They are taken as they are, unless the caller gives these names other indices.
    """
    if names is not None:
        n_classes = len(names)

    def indices(record_batch: Any, start: int) -> Labels:  # noqa: ANN401 - as above
        return check_labels(
            number_column(record_batch, name, start, ctx),
            place=ctx.place(name),
            start=start,
            n_classes=n_classes,
            n_allowed=ctx.limits.max_classes,
        )

    labels = _read_all(name, read_columns, ctx, indices)
    if names is None:
        return TableLabels(labels)
    reading = ctx.reading
    class_map: Mapping[str, int] = {class_name: index for index, class_name in enumerate(names)}
    if reading.class_map is None and not set(names) <= set(reading.classes or ()):
        return TableLabels(labels, class_map)
    class_map = class_indices(names, reading, place=ctx.place(name)).map
    asked = np.array([class_map[class_name] for class_name in names], np.int64)
    if np.array_equal(asked, np.arange(len(names))):
        return TableLabels(labels, class_map)
    note = "Labels were renumbered by the names that the file has for its classes."
    return TableLabels(asked[labels], class_map, notes=(note,))


def read_names(name: str, read_columns: ReadColumns, ctx: SetContext) -> TableLabels:
    """Read labels that are names of classes."""
    place = ctx.place(name)
    named = NamedLabels(location=place, max_classes=ctx.limits.max_classes)

    def gathered(record_batch: Any, start: int) -> Labels:  # noqa: ANN401 - as above
        names, rows = _names(record_batch.column(name), start, name, ctx)
        return named.codes(names)[rows]

    codes = _read_all(name, read_columns, ctx, gathered)
    found = class_indices(named.names, ctx.reading, place=place)
    return TableLabels(
        named.indices(found.map)[codes],
        found.map,
        is_numbered_by_name=found.by_order,
        notes=() if found.note is None else (found.note,),
    )


def count_rows(name: str, read_columns: ReadColumns, ctx: SetContext) -> int:
    """Return the number of rows of a table without labels, by one of its columns."""
    found = _read_all(name, read_columns, ctx, lambda rows, _: np.zeros(rows.num_rows, np.int64))
    return len(found)


def own_names(metadata: Mapping[bytes, bytes] | None, column: str, ctx: SetContext) -> Any:  # noqa: ANN401 - a list of names, or None
    """Return the names of the classes that `datasets` keeps for a column of a Parquet file.

    Raises
    ------
    InvalidDataset
        If two classes have one name.
    """
    try:
        found: Any = json.loads((metadata or {}).get(_DATASETS_KEY, b"null"))
    except (ValueError, RecursionError):
        return None
    for key in ("info", "features", column, "names"):
        found = found.get(key) if isinstance(found, dict) else None
    if not isinstance(found, list) or not found or not all(isinstance(n, str) for n in found):
        return None
    if len(set(found)) < len(found):
        raise ctx.invalid("expected each class by a name of its own, got one twice", column)
    return found


def number_column(record_batch: Any, name: str, start: int, ctx: SetContext) -> AnyArray:  # noqa: ANN401 - as above
    """Return a column of numbers, none of them missing."""
    column = record_batch.column(name)
    refuse_null(column, "a number", start, 1, name, ctx)
    values: AnyArray = column.to_numpy(zero_copy_only=False)
    return values


def _read_all(
    name: str,
    read_columns: ReadColumns,
    ctx: SetContext,
    convert: Callable[[Any, int], Labels],
) -> Labels:
    """Return all of a column, whose rows are counted and held to the limit."""
    parts: list[Labels] = []
    n_rows = 0
    for record_batch in read_columns([name], LABELS_PER_READ):
        parts.append(convert(record_batch, n_rows))
        n_rows += record_batch.num_rows
        if n_rows > ctx.limits.max_samples:
            break
    check_n_samples(n_rows, place=ctx.location, limits=ctx.limits)
    return np.concatenate(parts)


def _names(column: Any, start: int, name: str, ctx: SetContext) -> tuple[list[str], Labels]:  # noqa: ANN401 - as above
    """Return the distinct names in a column, and for each row the place of its own among them."""
    import pyarrow as pa  # noqa: PLC0415 - an optional extra

    try:
        # pyarrow looks itself neither for text that is none, nor for places beyond a dictionary.
        column.validate(full=True)
    except pa.ArrowException as error:
        raise ctx.invalid("expected names of classes in UTF-8, got damaged bytes", name) from error
    if not isinstance(column, pa.DictionaryArray):
        column = column.dictionary_encode()
    refuse_null(column, "the name of a class", start, 1, name, ctx)
    used, rows = np.unique(column.indices.to_numpy(zero_copy_only=False), return_inverse=True)
    # Names that are integers may come as such.
    names = [str(found) for found in column.dictionary.take(pa.array(used)).to_pylist()]
    for at, found in enumerate(names):
        if not found or len(found) > MAX_NAME_LENGTH:
            raise ctx.invalid(
                f"expected the name of a class, of at most {MAX_NAME_LENGTH} characters, got "
                + (f"{len(found)}" if found else "an empty cell"),
                name,
                start + int(np.argmax(rows == at)),
            )
    return names, rows.astype(np.int64)


def refuse_null(
    values: Any,  # noqa: ANN401 - as above
    expected: str,
    start: int,
    per_row: int,
    name: str,
    ctx: SetContext,
) -> None:
    """Refuse a column with an empty cell; ``per_row`` values of it belong to a row."""
    if values.null_count:
        at = int(np.argmax(values.is_null().to_numpy(zero_copy_only=False)))
        raise ctx.invalid(f"expected {expected}, got an empty cell", name, start + at // per_row)

"""The labels of a table: class indices, or names of classes. They are read at once."""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from howsure.limits import MAX_NAME_LENGTH
from howsure.statistics.arrays import Labels
from service.child.reading.checks import check_labels, check_n_samples
from service.child.reading.class_indices import (
    ClassLabels,
    class_indices,
    labels_by_name,
    labels_of_numbers,
    least_label,
    none_of_these,
)
from service.child.reading.columns import listed, nearest, refuse_null
from service.child.reading.tables import ReadColumns
from service.runner.messages.reading import SetContext

LABELS_PER_READ = 65_536

# The key of the schema's metadata under which the library `datasets` keeps its own types.
_DATASETS_KEY = b"huggingface"


NO_LABEL = "; leave out samples without a label, or the column if none has one"


def read_indices(
    name: str,
    read_columns: ReadColumns,
    ctx: SetContext,
    *,
    n_classes: int | None = None,
    names: Sequence[str] | None = None,
) -> ClassLabels:
    """Read labels that are class indices; ``names`` are the file's names for the classes.

    The indices are kept, unless the caller gives these names other indices.
    """
    column = _whole_column(name, read_columns, ctx)
    refuse_null(column, "a number", 0, name, ctx, fix=NO_LABEL)
    found = np.concatenate([chunk.to_numpy(zero_copy_only=False) for chunk in column.chunks])
    place, most = ctx.place(name), ctx.limits.max_classes
    if names is None:
        return labels_of_numbers(
            found, ctx.reading, place=place, n_classes=n_classes, max_classes=most
        )
    reading, least = ctx.reading, least_label(ctx.reading)
    labels = check_labels(found, place=place, n_classes=len(names), n_allowed=most, least=least)
    own_map = {class_name: index for index, class_name in enumerate(names)}
    if reading.class_map is None and not own_map.keys() <= set(reading.classes or ()):
        return ClassLabels(labels, own_map)
    class_map = class_indices(names, reading, place=place).map
    asked = np.array([class_map[class_name] for class_name in names], np.int64)
    if np.array_equal(asked, np.arange(len(names))):
        return ClassLabels(labels, class_map)
    note = "Labels were renumbered by the names that the file has for its classes."
    renumbered = np.where(labels < 0, labels, asked[np.maximum(labels, 0)])
    return ClassLabels(renumbered, class_map, notes=(note,))


def read_names(
    name: str,
    read_columns: ReadColumns,
    ctx: SetContext,
    *,
    classes: Sequence[str] | None = None,
) -> ClassLabels:
    """Read labels that are names of classes: of ``classes``, by index, if they are known."""
    chunks = _whole_column(name, read_columns, ctx, lambda values: values.dictionary_encode())
    refuse_null(chunks, "the name of a class", 0, name, ctx, fix=NO_LABEL)
    column = chunks.unify_dictionaries().combine_chunks()
    used, codes = np.unique(column.indices.to_numpy(), return_inverse=True)
    # Integers may be names too.
    names = [str(column.dictionary[at]) for at in used.tolist()]
    for at, found in enumerate(names):
        if not 0 < len(found) <= MAX_NAME_LENGTH:
            raise ctx.invalid(
                f"expected the name of a class, of at most {MAX_NAME_LENGTH} characters, got "
                + (f"{len(found)}" if found else f"an empty cell{NO_LABEL}"),
                name,
                int(np.argmax(codes == at)),
            )
    if classes is not None:
        return _named(names, codes, classes, name, ctx)
    place, most = ctx.place(name), ctx.limits.max_classes
    return labels_by_name(names, codes, ctx.reading, place=place, max_classes=most)


def _named(
    names: Sequence[str], codes: Labels, classes: Sequence[str], name: str, ctx: SetContext
) -> ClassLabels:
    index_of = {class_name: index for index, class_name in enumerate(classes)}
    index_of |= none_of_these(ctx.reading, classes)
    for at, found in enumerate(names):
        if found not in index_of:
            row = int(np.argmax(codes == at))
            raise ctx.invalid(
                f"expected the name of one of the {len(classes)} classes, {listed(classes)}, got "
                f"{listed([found])}{nearest([found], classes)}",
                name,
                row,
            )
    return ClassLabels(np.array([index_of[found] for found in names], np.int64)[codes])


def count_rows(name: str, read_columns: ReadColumns, ctx: SetContext) -> int:
    """Return the number of rows of a table, counted on one of its columns."""
    return len(_whole_column(name, read_columns, ctx))


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


def _whole_column(
    name: str,
    read_columns: ReadColumns,
    ctx: SetContext,
    convert: Callable[[Any], Any] = lambda values: values,
) -> Any:  # noqa: ANN401 - a pyarrow.ChunkedArray
    """Return a whole column, after a check of its number of rows."""
    import pyarrow as pa  # noqa: PLC0415 - slow to import

    chunks: list[Any] = []
    n_rows = 0
    for record_batch in read_columns([name], LABELS_PER_READ):
        chunks.append(convert(record_batch.column(name)))
        n_rows += record_batch.num_rows
        if n_rows > ctx.limits.max_samples:
            break
    check_n_samples(n_rows, place=ctx.location, limits=ctx.limits)
    return pa.chunked_array(chunks)

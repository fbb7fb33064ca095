"""Tables in Parquet, of outputs or of inputs, streamed through pyarrow."""

import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from service.child.reading.checks import SUPPLIED_PREFIX, check_n_classes, check_n_samples
from service.child.reading.class_indices import ClassLabels
from service.child.reading.columns import (
    NAME_CLASSES,
    TableColumn,
    TableColumns,
    check_n_columns,
    labels_are_names,
    refuse_duplicates,
)
from service.child.reading.pairs import PairSet, read_pairs, reads_pairs
from service.child.reading.parquet_columns import PictureColumn, is_list, read_types, table_column
from service.child.reading.set_file import SetFile, refuse_damage
from service.child.reading.table_columns import table_columns
from service.child.reading.table_labels import own_names, read_indices, read_names
from service.child.reading.tables import (
    ArraySource,
    BinaryColumn,
    ListColumn,
    NumberColumns,
    ReadColumns,
    TableSet,
    guarded,
)
from service.child.reading.unread_texts import add_texts
from service.errors import TooLarge
from service.runner.messages.limits import MEBIBYTE
from service.runner.messages.reading import SetContext

FORMAT = "parquet"
MAGIC = b"PAR1"
MAX_FOOTER_BYTES = 8 * MEBIBYTE
# Of one list in the footer, such as the columns of a row group.
MAX_FOOTER_ITEMS = 1_000_000

# Length of the footer, and the magic bytes behind it.
_TAIL = struct.Struct("<L4s")
_BUFFER_BYTES = 8 * MEBIBYTE
_MIN_COLUMN_BUFFER_BYTES = 4096


def open_parquet(file: SetFile, ctx: SetContext) -> TableSet | PairSet:
    """Open a Parquet file; check its footer, and its labels if it has any."""
    _check_tail(file, ctx)
    with refuse_damage(ctx.location):
        parquet = _open(file)
    metadata, schema = parquet.metadata, parquet.schema_arrow
    check_n_columns(metadata.num_columns, ctx)
    # A few bytes can claim billions: nothing is decoded before the claims are checked.
    check_n_samples(metadata.num_rows, place=ctx.location, limits=ctx.limits)
    _check_inflated(metadata, ctx)
    names = [field.name for field in schema]
    typed = [table_column(field.name, field.type) for field in schema]
    if reads_pairs(names, ctx):
        refuse_duplicates(names, ctx)
        read = partial(_read_columns, file, ctx, [])
        pairs = read_pairs(names, read, ctx, file_format=FORMAT)
        add_texts(pairs, typed, read, ctx)
        return pairs
    columns = table_columns(typed, ctx)
    _check_types(schema, columns, ctx)
    label = columns.label
    encoded = [label.name] if label is not None and label.kind == "text" else []
    read = partial(_read_columns, file, ctx, encoded)
    sources = {
        name: _source(chosen, columns, read, metadata, ctx)
        for name, chosen in columns.arrays.items()
    }
    if columns.holds_lists:
        columns = replace(columns, n_listed=sources[columns.kind].shape[0])
        check_n_classes(columns.n_listed, place=ctx.place(columns.kind), limits=ctx.limits)
    labels: ClassLabels | int = metadata.num_rows
    if label is not None:
        labels = _labels(label, columns, read, schema.metadata, ctx)
    dataset = TableSet(columns, sources, labels, read, ctx, file_format=FORMAT)
    add_texts(dataset, typed, read, ctx)
    return dataset


def _labels(
    label: TableColumn,
    columns: TableColumns,
    read: ReadColumns,
    metadata: Any,  # noqa: ANN401 - pyarrow has no types
    ctx: SetContext,
) -> ClassLabels:
    if columns.kind != "inputs":
        if labels_are_names(columns, ctx):
            return read_names(label.name, read, ctx, classes=columns.class_names)
        return read_indices(label.name, read, ctx, n_classes=columns.n_classes)
    if label.kind == "text":
        return read_names(label.name, read, ctx)
    if label.kind != "numbers":
        raise ctx.invalid(
            f"expected integers or names, got {label.type_name}; cast the column to int64",
            label.name,
        )
    names = own_names(metadata, label.name, ctx)
    if names is None and labels_are_names(columns, ctx):
        return read_names(label.name, read, ctx)
    return read_indices(label.name, read, ctx, names=names)


def _source(
    chosen: Sequence[TableColumn],
    columns: TableColumns,
    read: ReadColumns,
    metadata: Any,  # noqa: ANN401 - pyarrow has no types
    ctx: SetContext,
) -> ArraySource:
    first = chosen[0]
    if columns.is_binary:
        return BinaryColumn(first.name, ctx)
    if first.kind == "pictures":
        return PictureColumn(first.name, read, ctx)
    if first.kind == "lists":
        values = _first_row(read, [first.name], ctx).column(first.name)
        lengths = _lengths(values, first.name, ctx)
        return ListColumn(first.name, first.dtype, lengths, columns.kind, ctx)
    dtype = np.result_type(*(np.dtype(column.dtype) for column in chosen))
    if columns.kind == "inputs" and dtype.kind != "f" and _may_have_empty_cells(metadata, chosen):
        dtype = np.dtype(np.float64)  # integers have no NaN
    return NumberColumns(chosen, columns.kind, dtype.name, ctx)


def _may_have_empty_cells(metadata: Any, chosen: Sequence[TableColumn]) -> bool:  # noqa: ANN401 - as above
    """Tell whether a cell of these columns is empty, or the footer does not say so."""
    names = {column.name for column in chosen}
    groups = (metadata.row_group(group) for group in range(metadata.num_row_groups))
    for found in (group.column(at) for group in groups for at in range(group.num_columns)):
        if found.path_in_schema in names:
            statistics = found.statistics
            if statistics is None or not statistics.has_null_count or statistics.null_count:
                return True
    return False


def _first_row(read: ReadColumns, names: Sequence[str], ctx: SetContext) -> Any:  # noqa: ANN401 - as above
    for record_batch in read(names, 1):
        if record_batch.num_rows:
            return record_batch
    raise ctx.invalid("expected as many rows as the footer of the file has; send the file again")


def _lengths(values: Any, name: str, ctx: SetContext) -> tuple[int, ...]:  # noqa: ANN401 - as above
    """Return the lengths of the lists in the first row, one for each axis."""
    shape: list[int] = []
    while is_list(values.type):
        if not len(values) or values.null_count:
            raise ctx.invalid("expected a list of numbers, got an empty cell", name, 0)
        shape.append(len(values[0]))
        values = values.flatten()
    if 0 in shape or not len(values):
        raise ctx.invalid("expected a list of numbers, got an empty one", name, 0)
    return tuple(shape)


def _checked(record_batch: Any, casts: Mapping[str, Sequence[Any]], ctx: SetContext) -> Any:  # noqa: ANN401 - as above
    """Return the rows with columns cast, after a check of UTF-8 and the indices of dictionaries.

    pyarrow checks neither by itself.
    """
    for name, types in casts.items():
        column = record_batch.column(name)
        with refuse_damage(ctx.place(name)):
            column.validate(full=True)
        for of in types:
            column = column.cast(of)
        at = record_batch.schema.get_field_index(name)
        record_batch = record_batch.set_column(at, name, column)
    return record_batch


def _check_tail(file: SetFile, ctx: SetContext) -> None:
    """Refuse a file that is cut off, and a footer that is too long to be handed to a parser."""
    tail = file.read_at(_TAIL.size, max(0, file.size - _TAIL.size))
    if not tail.endswith(MAGIC) or len(tail) < _TAIL.size:
        raise ctx.invalid("expected a whole Parquet file, got one cut off")
    footer_bytes, _ = _TAIL.unpack(tail)
    if footer_bytes > MAX_FOOTER_BYTES:
        raise TooLarge.at(
            ctx.location,
            f"expected a footer of at most {MAX_FOOTER_BYTES} bytes, got {footer_bytes}; "
            "write fewer row groups or columns",
        )


def _check_inflated(metadata: Any, ctx: SetContext) -> None:  # noqa: ANN401 - as above
    groups = range(metadata.num_row_groups)
    inflated = sum(metadata.row_group(group).total_byte_size for group in groups)
    if inflated > ctx.limits.max_inflated_bytes:
        raise TooLarge.at(
            ctx.location,
            f"expected at most {ctx.limits.max_inflated_bytes} bytes, got {inflated}",
        )


def _check_types(schema: Any, columns: TableColumns, ctx: SetContext) -> None:  # noqa: ANN401 - as above
    """Refuse outputs, their labels and supplied columns that hold no numbers of the right kind."""
    if columns.kind != "inputs":
        label = columns.label
        if label is not None and not (label.kind == "text" and labels_are_names(columns, ctx)):
            _check_type(schema, label.name, ctx, is_label=True)
        for column in () if columns.holds_lists else columns.arrays[columns.kind]:
            _check_type(schema, column.name, ctx)
    for name in columns.supplied:
        _check_type(schema, f"{SUPPLIED_PREFIX}{name}", ctx)


def _check_type(schema: Any, name: str, ctx: SetContext, *, is_label: bool = False) -> None:  # noqa: ANN401 - as above
    from pyarrow import types  # noqa: PLC0415 - slow to import

    found = schema.field(name).type
    kind, fix = ("integers", "int64") if is_label else ("floats", "float32")
    is_whole = is_label and (types.is_integer(found) or types.is_boolean(found))
    if not (is_whole or types.is_floating(found) or types.is_decimal(found)):
        is_name = is_label and table_column(name, found).kind == "text"
        advice = NAME_CLASSES if is_name else f"cast the column to {fix}"
        raise ctx.invalid(f"expected {kind}, got {found}; {advice}", name)


def _open(file: SetFile, *, buffer_bytes: int = 0, encoded: Sequence[str] = ()) -> Any:  # noqa: ANN401 - as above
    """Open a file with pyarrow; the columns ``encoded`` keep their dictionaries."""
    import pyarrow as pa  # noqa: PLC0415 - slow to import
    import pyarrow.parquet as pa_parquet  # noqa: PLC0415 - as above

    return pa_parquet.ParquetFile(
        pa.PythonFile(file.open(), mode="r"),
        pre_buffer=False,
        buffer_size=buffer_bytes,
        read_dictionary=list(encoded),
        thrift_string_size_limit=MAX_FOOTER_BYTES,
        thrift_container_size_limit=MAX_FOOTER_ITEMS,
    )


def _read_columns(
    file: SetFile, ctx: SetContext, encoded: Sequence[str], names: Sequence[str], n_rows: int
) -> Iterator[Any]:
    """Stream columns as record batches of about ``n_rows`` rows."""
    from pyarrow.types import is_primitive  # noqa: PLC0415 - slow to import

    def opened() -> Iterator[Any]:
        # Without a buffer a whole row group is in memory, which may be the whole file.
        buffer = max(_MIN_COLUMN_BUFFER_BYTES, _BUFFER_BYTES // len(names))
        parquet = _open(file, buffer_bytes=buffer, encoded=encoded)
        batches: Iterator[Any] = parquet.iter_batches(
            n_rows, columns=list(names), use_threads=False
        )
        # Columns of plain numbers need neither, and there may be thousands.
        fields = (field for field in parquet.schema_arrow if not is_primitive(field.type))
        casts = {field.name: read_types(field.type) for field in fields if field.name in names}
        return (_checked(batch, casts, ctx) for batch in batches) if casts else batches

    return guarded(opened, partial(refuse_damage, ctx.location))

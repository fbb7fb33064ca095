"""Tables in Parquet, of outputs or of inputs, streamed through pyarrow."""

import struct
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np

from service.child.reading.checks import SUPPLIED_PREFIX, check_n_samples
from service.child.reading.parquet_columns import PictureColumn, is_list, table_column
from service.child.reading.set_file import SetFile
from service.child.reading.table_columns import (
    LABEL,
    TableColumns,
    check_n_columns,
    reads_outputs,
    table_columns,
)
from service.child.reading.table_inputs import (
    TableColumn,
    input_columns,
    open_inputs,
    take_as_names,
)
from service.child.reading.table_labels import (
    ReadColumns,
    TableLabels,
    own_names,
    read_indices,
    read_names,
)
from service.child.reading.tables import (
    READ_BYTES,
    ArraySource,
    ListColumn,
    NumberColumns,
    TableSet,
    open_outputs,
    require_pyarrow,
)
from service.errors import InvalidDataset, TooLarge
from service.runner.messages.limits import MEBIBYTE
from service.runner.messages.reading import SetContext

FORMAT = "parquet"
MAGIC = b"PAR1"
MAX_FOOTER_BYTES = 8 * MEBIBYTE
# Of one list in the footer, such as the columns of a row group.
MAX_FOOTER_ITEMS = 1_000_000

# Length of the footer, and the mark behind it.
_TAIL = struct.Struct("<L4s")
_BUFFER_BYTES = 8 * MEBIBYTE
_MIN_COLUMN_BUFFER_BYTES = 4096


def open_parquet(file: SetFile, ctx: SetContext) -> TableSet:
    """Open a Parquet file, having judged its footer and checked its labels, if any."""
    require_pyarrow(ctx.location)
    _check_tail(file, ctx)
    with _refuse_damage(ctx):
        parquet = _open(file)
    metadata, schema = parquet.metadata, parquet.schema_arrow
    check_n_columns(metadata.num_columns, ctx)
    _check_claims(metadata, ctx)
    if not reads_outputs(schema.names, ctx.reading):
        return _open_inputs(file, metadata.num_rows, schema, ctx)
    columns = table_columns(schema.names, ctx)
    dtype = _check_types(schema, columns, ctx)
    read = partial(_read_columns, file, ctx, ())
    return open_outputs(columns, read, ctx, dtype=dtype, file_format=FORMAT)


def _open_inputs(file: SetFile, n_rows: int, schema: Any, ctx: SetContext) -> TableSet:  # noqa: ANN401 - pyarrow has no types
    columns = input_columns([table_column(field.name, field.type) for field in schema], ctx)
    check_n_samples(n_rows, place=ctx.location, limits=ctx.limits)
    for name in columns.supplied:
        _check_kind(schema, f"{SUPPLIED_PREFIX}{name}", ctx)
    label = columns.label
    encoded = [label.name] if label is not None and label.holds == "text" else []
    read = partial(_read_columns, file, ctx, encoded)
    labels = n_rows if label is None else _labels(label, read, schema.metadata, ctx)
    sources = {name: _source(chosen, read, ctx) for name, chosen in columns.inputs.items()}
    return open_inputs(columns, sources, labels, read, ctx, file_format=FORMAT)


def _labels(label: TableColumn, read: ReadColumns, metadata: Any, ctx: SetContext) -> TableLabels:  # noqa: ANN401 - as above
    if label.holds == "text":
        return read_names(label.name, read, ctx)
    if label.holds != "numbers" or not np.issubdtype(label.dtype, np.integer):
        raise ctx.invalid(
            f"expected integers or names, got {label.found}; cast the column to int64", label.name
        )
    names = own_names(metadata, label.name, ctx)
    if names is None and take_as_names(ctx.reading):
        return read_names(label.name, read, ctx)
    return read_indices(label.name, read, ctx, names=names)


def _source(chosen: Sequence[TableColumn], read: ReadColumns, ctx: SetContext) -> ArraySource:
    first = chosen[0]
    if first.holds == "pictures":
        pictures = PictureColumn(first.name, ctx)
        pictures.measure(_first_row(read, pictures.columns, ctx))
        return pictures
    if first.holds == "lists":
        values = _first_row(read, [first.name], ctx).column(first.name)
        return ListColumn(first.name, first.dtype, _lengths(values, first.name, ctx), ctx)
    return NumberColumns(
        [column.name for column in chosen],
        np.result_type(*(np.dtype(column.dtype) for column in chosen)).name,
        ctx,
        most_rows=max(1, READ_BYTES // (8 * len(chosen))),
    )


def _first_row(read: ReadColumns, names: Sequence[str], ctx: SetContext) -> Any:  # noqa: ANN401 - as above
    for record_batch in read(names, 1):
        if record_batch.num_rows:
            return record_batch
    raise ctx.invalid("expected as many rows as the footer of the file has; send the file again")


def _lengths(values: Any, name: str, ctx: SetContext) -> tuple[int, ...]:  # noqa: ANN401 - as above
    """Return the lengths of the lists in the first row, one an axis."""
    shape: list[int] = []
    while is_list(values.type):
        if not len(values) or values.null_count:
            raise ctx.invalid("expected a list of numbers, got an empty cell", name, 0)
        shape.append(len(values[0]))
        values = values.flatten()
    if 0 in shape or not len(values):
        raise ctx.invalid("expected a list of numbers, got an empty one", name, 0)
    return tuple(shape)


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


def _check_claims(metadata: Any, ctx: SetContext) -> None:  # noqa: ANN401 - as above
    """Refuse what the footer claims before a page is decoded: a few bytes can claim billions."""
    if metadata.num_rows > ctx.limits.max_samples:
        raise TooLarge.at(
            ctx.location,
            f"expected at most {ctx.limits.max_samples} samples, got {metadata.num_rows}; "
            "send fewer",
        )
    groups = range(metadata.num_row_groups)
    inflated = sum(metadata.row_group(group).total_byte_size for group in groups)
    if inflated > ctx.limits.max_inflated_bytes:
        raise TooLarge.at(
            ctx.location,
            f"expected at most {ctx.limits.max_inflated_bytes} bytes, got {inflated}",
        )


def _check_types(schema: Any, columns: TableColumns, ctx: SetContext) -> str:  # noqa: ANN401 - as above
    """Refuse columns that hold no numbers of the right kind; return the dtype of the outputs."""
    for name in columns.all:
        _check_kind(schema, name, ctx, integers=name == LABEL)
    classes = (schema.field(name).type for name in columns.classes)
    dtypes = {str(found.to_pandas_dtype().__name__) for found in classes}
    return dtypes.pop() if len(dtypes) == 1 else "float64"


def _check_kind(schema: Any, name: str, ctx: SetContext, *, integers: bool = False) -> None:  # noqa: ANN401 - as above
    import pyarrow as pa  # noqa: PLC0415 - an optional extra

    found = schema.field(name).type
    kind, fix = ("integers", "int64") if integers else ("floats", "float32")
    if not (pa.types.is_integer(found) if integers else pa.types.is_floating(found)):
        raise ctx.invalid(f"expected {kind}, got {found}; cast the column to {fix}", name)


def _open(file: SetFile, *, buffer_bytes: int = 0, encoded: Sequence[str] = ()) -> Any:  # noqa: ANN401 - as above
    """Open a file with pyarrow; the columns ``encoded`` keep their dictionaries."""
    import pyarrow as pa  # noqa: PLC0415 - an optional extra
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
    # Without a buffer a whole row group is in memory, which may be the whole file.
    buffer = max(_MIN_COLUMN_BUFFER_BYTES, _BUFFER_BYTES // len(names))
    with _refuse_damage(ctx):
        parquet = _open(file, buffer_bytes=buffer, encoded=encoded)
        batches = parquet.iter_batches(n_rows, columns=list(names), use_threads=False)
    while True:
        # The consumer's own exceptions must not pass through here: so no yield inside.
        with _refuse_damage(ctx):
            record_batch = next(batches, None)
        if record_batch is None:
            return
        yield record_batch


@contextmanager
def _refuse_damage(ctx: SetContext) -> Iterator[None]:
    """Turn what pyarrow raises over a broken file into a violation."""
    import pyarrow as pa  # noqa: PLC0415 - an optional extra

    try:
        yield
    except MemoryError:
        raise  # pyarrow's own is one of its exceptions too
    except (pa.ArrowException, OSError, ValueError, OverflowError) as error:
        raise InvalidDataset.at(
            ctx.location, "Damaged Parquet file. Write it again and resend."
        ) from error

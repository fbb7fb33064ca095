"""Tables of outputs in Parquet, streamed through pyarrow after its footer has been judged."""

import struct
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from service.datasets.limits import DatasetLimits
from service.datasets.reading import Reading
from service.datasets.table import TableDataset, count_samples, require_pyarrow
from service.datasets.table_columns import (
    LABEL,
    TableColumns,
    check_n_columns,
    table_columns,
)
from service.errors import InvalidDataset, TooLarge

FORMAT = "parquet"
MAGIC = b"PAR1"
MAX_FOOTER_BYTES = 32 * 1024**2

_TAIL = struct.Struct("<L4s")
_BUFFER_BYTES = 8 * 1024**2
_MIN_COLUMN_BUFFER_BYTES = 4096


def is_parquet(head: bytes, _path: Path) -> bool:
    """Tell whether a file begins as Parquet does."""
    return head.startswith(MAGIC)


def open_parquet(
    path: Path,
    *,
    location: str,
    limits: DatasetLimits,
    labels_required: bool,
    reading: Reading,  # noqa: ARG001 - nothing is left open
) -> TableDataset:
    """Open a Parquet file, having judged its footer and checked its labels, if any."""
    require_pyarrow(location)
    _check_footer_size(path, location=location)
    with _refuse_damage(location), _open(path) as file:
        metadata, schema = file.metadata, file.schema_arrow
    check_n_columns(metadata.num_columns, location=location, limits=limits)
    columns = table_columns(
        schema.names, location=location, limits=limits, labels_required=labels_required
    )
    _check_sizes(metadata, location=location, limits=limits)
    dtype = _check_types(schema, columns, location=location)
    read_columns = partial(_read_columns, path, location)
    n_samples = count_samples(read_columns, columns, location=location, limits=limits)
    return TableDataset(
        columns,
        read_columns,
        n_samples=n_samples,
        dtype=dtype,
        file_format=FORMAT,
        location=location,
        limits=limits,
    )


def _check_footer_size(path: Path, *, location: str) -> None:
    """Refuse a footer that is cut off, or too large to be handed to a parser."""
    size = path.stat().st_size
    with path.open("rb") as file:
        file.seek(max(0, size - _TAIL.size))
        tail = file.read(_TAIL.size)
    if len(tail) != _TAIL.size or not tail.endswith(MAGIC):
        raise InvalidDataset.at(location, "expected a whole Parquet file, got one cut off")
    footer_bytes, _ = _TAIL.unpack(tail)
    if footer_bytes > MAX_FOOTER_BYTES:
        raise TooLarge.at(
            location,
            f"expected a footer of at most {MAX_FOOTER_BYTES} bytes, got {footer_bytes}; "
            "write fewer row groups",
        )


def _check_sizes(metadata: Any, *, location: str, limits: DatasetLimits) -> None:  # noqa: ANN401 - pyarrow has no types
    """Refuse what the footer claims before a page is decoded: a few bytes can claim billions."""
    if metadata.num_rows > limits.max_samples:
        raise TooLarge.at(
            location,
            f"expected at most {limits.max_samples} samples, got {metadata.num_rows}; send fewer",
        )
    groups = range(metadata.num_row_groups)
    inflated = sum(metadata.row_group(group).total_byte_size for group in groups)
    if inflated > limits.max_inflated_bytes:
        raise TooLarge.at(
            location, f"expected at most {limits.max_inflated_bytes} bytes, got {inflated}"
        )


def _check_types(schema: Any, columns: TableColumns, *, location: str) -> str:  # noqa: ANN401 - as above
    """Refuse columns that hold no numbers of the right kind; return the dtype of the outputs."""
    import pyarrow as pa  # noqa: PLC0415 - an optional extra

    for name in columns.all:
        found = schema.field(name).type
        if name == LABEL and not pa.types.is_integer(found):
            raise InvalidDataset.at(
                f"{location}.{name}", f"expected integers, got {found}; cast the column to int64"
            )
        if name != LABEL and not pa.types.is_floating(found):
            raise InvalidDataset.at(
                f"{location}.{name}", f"expected floats, got {found}; cast the column to float32"
            )
    classes = (schema.field(name).type for name in columns.classes)
    dtypes = {str(found.to_pandas_dtype().__name__) for found in classes}
    return dtypes.pop() if len(dtypes) == 1 else "float64"


def _open(path: Path, *, buffer_bytes: int = 0) -> Any:  # noqa: ANN401 - as above
    import pyarrow.parquet as pa_parquet  # noqa: PLC0415 - an optional extra

    return pa_parquet.ParquetFile(
        str(path),
        pre_buffer=False,
        buffer_size=buffer_bytes,
        thrift_string_size_limit=MAX_FOOTER_BYTES,
    )


def _read_columns(path: Path, location: str, names: Sequence[str], n_rows: int) -> Iterator[Any]:
    """Stream columns as record batches of about ``n_rows`` rows."""
    # Without a buffer a whole row group is in memory, which may be the whole file.
    buffer = max(_MIN_COLUMN_BUFFER_BYTES, _BUFFER_BYTES // len(names))
    with _refuse_damage(location):
        file = _open(path, buffer_bytes=buffer)
    with file:
        batches = file.iter_batches(n_rows, columns=list(names), use_threads=False)
        while True:
            # The consumer's own exceptions must not pass through here: so no yield inside.
            with _refuse_damage(location):
                record_batch = next(batches, None)
            if record_batch is None:
                return
            yield record_batch


@contextmanager
def _refuse_damage(location: str) -> Iterator[None]:
    """Turn what pyarrow raises over a broken file into a violation."""
    import pyarrow as pa  # noqa: PLC0415 - an optional extra

    try:
        yield
    except (pa.ArrowException, OSError, ValueError, OverflowError) as error:
        raise InvalidDataset.at(
            location, "expected a whole Parquet file, got damaged bytes; send the file again"
        ) from error

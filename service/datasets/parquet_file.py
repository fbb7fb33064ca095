"""A Parquet file as a stream of record batches, after its footer has been judged."""

import struct
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from service.datasets.limits import DatasetLimits
from service.datasets.table_columns import most_columns
from service.datasets.thrift import ThriftError, list_length
from service.errors import InvalidDataset, TooLarge

MAGIC = b"PAR1"
# It is read byte by byte for where the pages lie, which takes a second for some of these.
MAX_FOOTER_BYTES = 8 * 1024**2
# Lists and structs in columns: parts of the schema beside those that are columns.
MAX_NESTED = 10_000

# Length of the footer, and the mark behind it.
_TAIL = struct.Struct("<L4s")
# Enough for the head of the schema; its field id of parquet.thrift.
_HEAD_BYTES = 64
_SCHEMA = 2
_BUFFER_BYTES = 8 * 1024**2
_MIN_COLUMN_BUFFER_BYTES = 4096


def check_footer(path: Path, *, location: str, limits: DatasetLimits) -> None:
    """Refuse a footer that is cut off, too large, or of too many columns to be handed to a parser.

    pyarrow makes several objects of each column before it tells their number.
    """
    footer = read_footer(path, location=location, most=_HEAD_BYTES)
    most = most_columns(limits) + MAX_NESTED
    try:
        found = list_length(footer, _SCHEMA)
    except ThriftError as error:
        raise damaged(location) from error
    if found > most:
        raise TooLarge.at(
            location, f"expected a schema of at most {most} columns and parts of them, got {found}"
        )


def read_footer(path: Path, *, location: str, most: int = MAX_FOOTER_BYTES) -> bytes:
    """Return the footer, or its first bytes.

    Raises
    ------
    InvalidDataset
        If the file does not end with one.
    TooLarge
        If it is longer than one may be.
    """
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
                "write fewer row groups or columns",
            )
        file.seek(max(0, size - _TAIL.size - footer_bytes))
        return file.read(min(footer_bytes, most))


def check_claims(metadata: Any, *, location: str, limits: DatasetLimits) -> None:  # noqa: ANN401 - pyarrow has no types
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


def open_file(path: Path, *, buffer_bytes: int = 0, encoded: Sequence[str] = ()) -> Any:  # noqa: ANN401 - as above
    """Open a file with pyarrow; the columns ``encoded`` keep their dictionaries."""
    import pyarrow.parquet as pa_parquet  # noqa: PLC0415 - an optional extra

    return pa_parquet.ParquetFile(
        str(path),
        pre_buffer=False,
        buffer_size=buffer_bytes,
        read_dictionary=list(encoded),
        thrift_string_size_limit=MAX_FOOTER_BYTES,
    )


def read_columns(
    path: Path, location: str, encoded: Sequence[str], names: Sequence[str], n_rows: int
) -> Iterator[Any]:
    """Stream columns as record batches of about ``n_rows`` rows."""
    # Without a buffer a whole row group is in memory, which may be the whole file.
    buffer = max(_MIN_COLUMN_BUFFER_BYTES, _BUFFER_BYTES // len(names))
    with refuse_damage(location):
        file = open_file(path, buffer_bytes=buffer, encoded=encoded)
    with file:
        batches = file.iter_batches(n_rows, columns=list(names), use_threads=False)
        while True:
            # The consumer's own exceptions must not pass through here: so no yield inside.
            with refuse_damage(location):
                record_batch = next(batches, None)
            if record_batch is None:
                return
            yield record_batch


@contextmanager
def refuse_damage(location: str) -> Iterator[None]:
    """Turn what pyarrow raises over a broken file into a violation."""
    import pyarrow as pa  # noqa: PLC0415 - an optional extra

    try:
        yield
    except (pa.ArrowException, OSError, ValueError, OverflowError) as error:
        raise damaged(location) from error


def damaged(location: str) -> InvalidDataset:
    """Return the error for a file that is not as its footer says."""
    return InvalidDataset.at(
        location, "expected a whole Parquet file, got damaged bytes; send the file again"
    )

"""Where the footer of a Parquet file says that the pages of its columns lie.

pyarrow tells this too, but ends the process where the footer is not right.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from service.datasets.parquet_file import damaged, read_footer
from service.datasets.thrift import ThriftError, read_struct

# Field ids of parquet.thrift.
_ROW_GROUPS = 4
_COLUMNS = 1
_COLUMN = 3
_VALUES, _STORED_BYTES, _DATA_OFFSET, _DICTIONARY_OFFSET = 5, 7, 9, 11


@dataclass(frozen=True)
class ColumnChunk:
    """Where the pages of a column in one row group lie, and how many values they have."""

    column: int
    start: int
    end: int
    n_values: int


def column_chunks(path: Path, n_columns: int, *, location: str) -> Iterator[ColumnChunk]:
    """Yield the chunks of all columns, one row group after the other.

    Raises
    ------
    TooLarge
        If there is more to read than can be read in good time.
    InvalidDataset
        If the footer is damaged.
    """
    footer = read_footer(path, location=location)
    try:
        for group in _list(read_struct(footer)[0].get(_ROW_GROUPS)):
            yield from _chunks_of(group, n_columns)
    except ThriftError as error:
        raise damaged(location) from error


def _chunks_of(group: object, n_columns: int) -> Iterator[ColumnChunk]:
    columns = _list(_struct(group).get(_COLUMNS))
    if len(columns) != n_columns:
        raise ThriftError("expected each column")
    for position, column in enumerate(columns):
        yield _chunk(position, _struct(_struct(column).get(_COLUMN)))


def _chunk(position: int, column: dict[int, object]) -> ColumnChunk:
    start, n_bytes = _integer(column.get(_DATA_OFFSET)), _integer(column.get(_STORED_BYTES))
    dictionary = _integer(column.get(_DICTIONARY_OFFSET, 0))
    if 0 < dictionary < start:
        start = dictionary
    return ColumnChunk(position, start, start + n_bytes, _integer(column.get(_VALUES)))


def _integer(value: object) -> int:
    if not isinstance(value, int) or value < 0:
        raise ThriftError("expected a size")
    return value


def _list(value: object) -> list[object]:
    if not isinstance(value, list):
        raise ThriftError("expected a list")
    return value


def _struct(value: object) -> dict[int, object]:
    if not isinstance(value, dict):
        raise ThriftError("expected a struct")
    return value

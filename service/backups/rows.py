"""Rows as JSON lines that do not depend on the database."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime
from itertools import islice
from typing import Any, Literal, TypeAlias
from uuid import UUID

from sqlalchemy import (
    JSON,
    BigInteger,
    Boolean,
    Column,
    Connection,
    Double,
    Integer,
    String,
    Table,
    Text,
    Uuid,
    column,
    func,
    insert,
    literal,
    select,
    table,
)
from sqlalchemy.types import TypeEngine

from models import FiniteNumber, UtcDateTime

ColumnKind: TypeAlias = Literal["uuid", "time", "json", "flag", "integer", "real", "text"]

# The type by which columns of each kind are read and written, in every revision of the schema.
TYPES: Mapping[ColumnKind, TypeEngine[Any]] = {
    "uuid": Uuid(),
    "time": UtcDateTime(),
    "json": JSON(none_as_null=True),
    "flag": Boolean(),
    "integer": BigInteger(),
    "real": Double(),
    "text": Text(),
}
_OF_TYPE: tuple[tuple[type[TypeEngine[Any]], ColumnKind], ...] = (
    (Uuid, "uuid"),
    (UtcDateTime, "time"),
    (JSON, "json"),
    (Boolean, "flag"),
    (Integer, "integer"),
    (FiniteNumber, "real"),
    (String, "text"),
)


def kind_of(column: Column[Any]) -> ColumnKind:
    """Return the kind of a column of the models.

    Raises
    ------
    TypeError
        If backups do not support its type.
    """
    for found, kind in _OF_TYPE:
        if isinstance(column.type, found):
            return kind
    raise TypeError(f"{column}: backups know no {column.type!r}")


_DECODERS: Mapping[ColumnKind, Callable[[Any], Any]] = {
    "uuid": UUID,
    "time": datetime.fromisoformat,
    "real": float,
}


def decoded(kind: ColumnKind, value: object) -> object:
    """Return a column's value from its JSON."""
    decode = _DECODERS.get(kind)
    return value if value is None or decode is None else decode(value)


BATCH_ROWS = 500
STREAMED = {"yield_per": BATCH_ROWS}


def kinds_of(source: Table) -> dict[str, ColumnKind]:
    """Return the columns of a table of the models."""
    # A name of SQLAlchemy is more than a text.
    return {str(found.name): kind_of(found) for found in source.columns}


def read_lines(connection: Connection, source: Table) -> Iterator[bytes]:
    """Yield each row of a table as a JSON array, in the order of its columns.

    A running job is written as queued, since its owner does not exist after a restore.
    """
    names = kinds_of(source)
    query = select(source).order_by(*source.primary_key)
    for row in connection.execute(query, execution_options=STREAMED).mappings():
        values = _let_go(dict(row))
        line = [values[name] for name in names]
        # Ids and times are text.
        yield json.dumps(line, separators=(",", ":"), allow_nan=False, default=str).encode()


def write_lines(
    connection: Connection, name: str, kinds: Mapping[str, ColumnKind], lines: Iterable[bytes]
) -> None:
    """Insert the rows into the table of this name."""
    into = insert(table(name, *(column(of, TYPES[kind]) for of, kind in kinds.items())))
    remaining = iter(lines)
    while batch := [_row(kinds, line) for line in islice(remaining, BATCH_ROWS)]:
        connection.execute(into, batch)
    _go_on_counting(connection, name, kinds)


def _let_go(row: dict[str, Any]) -> dict[str, Any]:
    """Queue a running job again, as its owner would do; this attempt does not count."""
    if row.get("status") != "running" or "lease_owner" not in row:
        return row
    handed_back = {"status": "queued", "lease_owner": None, "lease_until": None}
    return row | handed_back | {"attempt": max(0, row["attempt"] - 1)}


def _row(kinds: Mapping[str, ColumnKind], line: bytes) -> dict[str, Any]:
    values = zip(kinds.items(), json.loads(line), strict=True)
    return {name: decoded(kind, value) for (name, kind), value in values}


def _go_on_counting(connection: Connection, name: str, kinds: Mapping[str, ColumnKind]) -> None:
    """Let PostgreSQL's sequences continue after the inserted numbers."""
    if connection.dialect.name != "postgresql":
        return
    for of in (of for of, kind in kinds.items() if kind == "integer"):
        sequence = connection.scalar(select(func.pg_get_serial_sequence(f'"{name}"', of)))
        if sequence is not None:
            highest = select(func.max(column(of, BigInteger))).select_from(table(name))
            last = func.coalesce(highest.scalar_subquery(), literal(0))
            connection.execute(select(func.setval(sequence, last + 1, False)))

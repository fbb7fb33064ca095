"""Kinds of columns: values as JSON that no database's dialect shows in."""

import math
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, Literal, TypeAlias
from uuid import UUID

from sqlalchemy import JSON, BigInteger, Boolean, Column, Double, Integer, String, Text, Uuid
from sqlalchemy.types import TypeEngine

from models import UtcDateTime

ColumnKind: TypeAlias = Literal["uuid", "time", "json", "flag", "integer", "real", "text"]

# What is read from a column of each kind, and written to one, whatever the schema's revision.
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
    (Double, "real"),
    (String, "text"),
)


def kind_of(column: Column[Any]) -> ColumnKind:
    """Return the kind of a column of the models.

    Raises
    ------
    TypeError
        If it is of a type that backups do not know yet.
    """
    for found, kind in _OF_TYPE:
        if isinstance(column.type, found):
            return kind
    raise TypeError(f"{column}: backups know no {column.type!r}")


def encoded(kind: ColumnKind, value: Any) -> Any:  # noqa: ANN401 - whatever the kind says
    """Return a column's value as JSON has it."""
    if value is None:
        return None
    if kind == "uuid":
        return str(value)
    if kind == "time":
        return value.isoformat()
    if kind == "real" and not math.isfinite(value):
        return repr(value)  # JSON has no number for it
    return value


_DECODERS: Mapping[ColumnKind, Callable[[Any], Any]] = {
    "uuid": UUID,
    "time": datetime.fromisoformat,
    "real": float,
}


def decoded(kind: ColumnKind, value: Any) -> Any:  # noqa: ANN401 - as above
    """Return the value that was encoded."""
    decode = _DECODERS.get(kind)
    return value if value is None or decode is None else decode(value)

"""Dataclasses of the JSON that the service sends."""

from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields
from datetime import datetime
from types import NoneType
from typing import Any, Self, TypeVar, get_args, get_origin, get_type_hints

Read = TypeVar("Read", bound="Record")

# The key of a field's metadata that holds the field's name in the JSON, where it is another one.
NAME = "name"


@dataclass(frozen=True)
class Record:
    """A dataclass of the JSON that the service sends."""

    @classmethod
    def of(cls, document: Mapping[str, Any]) -> Self:
        """Read the JSON of the service."""
        return record_of(cls, document)


def record_of(kind: type[Read], document: Mapping[str, Any], **others: object) -> Read:
    """Return a dataclass with the values of the JSON by name, read by the types of the fields.

    Records, times and mappings are read as such, and lists are tuples. A value that is null or
    missing is the default, or empty. A field ``resource`` is the whole JSON. ``others`` are fields
    that the JSON lacks.
    """
    types, values = get_type_hints(kind), dict[str, Any](others)
    for field in fields(kind):
        key = field.metadata.get(NAME, field.name)
        value = document if key == "resource" else document.get(key)
        if field.name not in others and (value is not None or field.default is MISSING):
            values[field.name] = _read(types[field.name], value)
    return kind(**values)


def _read(kind: Any, value: Any) -> Any:  # noqa: ANN401 - any type, and a value of it
    kinds = get_args(kind)
    if NoneType in kinds:
        return None if value is None else _read(kinds[0], value)
    if get_origin(kind) is tuple:
        return tuple(_read(kinds[0], item) for item in value or ())
    if get_origin(kind) is Mapping:
        return {kinds[0](name): _read(kinds[1], item) for name, item in (value or {}).items()}
    if isinstance(kind, type) and issubclass(kind, Record):
        return kind.of(value)
    if value is None and kind is not Any:
        raise ValueError(f"expected {kind} in the JSON of the service, got nothing")
    return datetime.fromisoformat(value) if kind is datetime else value

"""Dataclasses of the JSON that the service sends."""

from collections.abc import Mapping
from dataclasses import fields
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

Record = TypeVar("Record", bound="DataclassInstance")


def record_of(kind: type[Record], document: Mapping[str, Any], **others: object) -> Record:
    """Return a dataclass with the values of the JSON by name, lists as tuples.

    ``others`` are fields that have other names or types in the JSON.
    """
    names = [field.name for field in fields(kind) if field.name not in others]
    values = {name: document[name] for name in names}
    plain = {name: tuple(of) if isinstance(of, list) else of for name, of in values.items()}
    return kind(**plain, **others)

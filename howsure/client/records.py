"""Dataclasses of the JSON that the service sends."""

from collections.abc import Mapping
from dataclasses import fields
from typing import Any, TypeVar

T = TypeVar("T")


def record_of(kind: type[T], told: Mapping[str, Any], **own: Any) -> T:  # noqa: ANN401 - any field
    """Return a dataclass with the values of the JSON by name, lists as tuples.

    Fields in ``own`` have other names or types in the JSON.
    """
    names = [field.name for field in fields(kind) if field.name not in own]  # type: ignore[arg-type]  # a dataclass
    values = {name: told[name] for name in names}
    plain = {name: tuple(of) if isinstance(of, list) else of for name, of in values.items()}
    return kind(**plain, **own)

"""Results of the statistics as plain data, for storage and for JSON."""

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np


@runtime_checkable
class KnowsItsPlainForm(Protocol):
    """What gives itself as plain data."""

    def as_dict(self) -> dict[str, Any]:
        """Return what JSON can hold."""


def as_plain(value: object) -> Any:  # noqa: ANN401 -- whatever JSON can hold
    """Return dicts, lists, strings, numbers, booleans and None in place of ``value``.

    Dataclasses give a dict by field, arrays and sequences a list, and keys of mappings turn into
    strings (``0.99`` into ``"0.99"``). What has an ``as_dict`` of its own is asked for it.

    Raises
    ------
    TypeError
        If a part of it is none of these.
    """
    if value is None or isinstance(value, str | bool | int | float):
        return value
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    if isinstance(value, Mapping):
        return {str(key): as_plain(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [as_plain(part) for part in value]
    if isinstance(value, KnowsItsPlainForm):
        return value.as_dict()
    if is_dataclass(value):
        return {field.name: as_plain(getattr(value, field.name)) for field in fields(value)}
    raise TypeError(f"value must be plain data, not {type(value).__name__}")


class PlainData:
    """A dataclass that gives itself as plain data."""

    def as_dict(self) -> dict[str, Any]:
        """Return the fields by name, as JSON can hold them."""
        if not is_dataclass(self):
            raise TypeError(f"{type(self).__name__} must be a dataclass")
        return {field.name: as_plain(getattr(self, field.name)) for field in fields(self)}

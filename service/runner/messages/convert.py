"""Conversion of JSON from a child process to the dataclasses of the messages, within bounds."""

import json
import math
import os
from dataclasses import is_dataclass
from typing import Annotated, Any, TypeAlias, TypeVar

import msgspec

MAX_TEXT = 4000
MAX_ITEMS = 1_000_000
INTEGER_END = 2**63

Positive: TypeAlias = Annotated[int, msgspec.Meta(ge=1)]
NotNegative: TypeAlias = Annotated[int, msgspec.Meta(ge=0)]
NotNegativeFloat: TypeAlias = Annotated[float, msgspec.Meta(ge=0)]

T = TypeVar("T")


class FieldError(ValueError):
    """A message has the wrong type, or exceeds a bound."""


def to_fields(message: object) -> dict[str, Any]:
    """Return a dataclass as plain JSON values, paths as a child in another folder needs them."""
    fields: dict[str, Any] = msgspec.to_builtins(message, enc_hook=os.path.abspath)
    return fields


def to_json(message: object) -> dict[str, Any]:
    """Return the same as `to_fields`, with lists in place of tuples."""
    fields: dict[str, Any] = json.loads(json.dumps(to_fields(message)))
    return fields


def convert(fields: object, kind: type[T], *, name: str = "") -> T:
    """Return the message of this type; unknown fields are ignored.

    Errors begin with ``name``, or with the name of the type.

    Raises
    ------
    FieldError
        If a field is missing, has another type, or exceeds its bounds.
    """
    try:
        check_bounds(fields)
        return msgspec.convert(fields, kind, dec_hook=lambda path, value: path(value))
    except (msgspec.ValidationError, ValueError, RecursionError) as error:
        raise FieldError(f"{name or kind.__name__}: {error}") from error


def check_bounds(value: object) -> None:
    """Check the length of texts and lists, and the range of numbers, at any depth of a message.

    Raises
    ------
    ValueError
        If a text is too long or cannot be encoded, a list is too long, an integer exceeds 64 bits,
        or a float is not finite.
    """
    if is_dataclass(value):
        value = list(vars(value).values())
    if isinstance(value, dict):
        value = [*value, *value.values()]
    if not isinstance(value, list | tuple | frozenset):
        _check_scalar(value)
        return
    if len(value) > MAX_ITEMS:
        raise ValueError("a list is too long")
    for item in value:
        check_bounds(item)


def _check_scalar(value: object) -> None:
    match value:
        case str():
            if len(value) > MAX_TEXT:
                raise ValueError("a text is too long")
            value.encode()  # a lone surrogate would fail later, far from its cause
        case float():
            if not math.isfinite(value):
                raise ValueError("a number is not finite")
        case int():
            if not -INTEGER_END <= value < INTEGER_END:
                raise ValueError("an integer exceeds 64 bits")

"""Reads JSON that a child sent: of the expected types and of moderate size, or not at all."""

import math
from typing import Any

MAX_TEXT = 4000
MAX_ITEMS = 1_000_000


class FieldError(ValueError):
    """A value is not of the type or size it must be."""


def text(value: object) -> str:
    """Return a string that is not too long and can be stored.

    Raises
    ------
    FieldError
        If it is none.
    """
    if not isinstance(value, str) or len(value) > MAX_TEXT:
        raise FieldError("expected a string of moderate length")
    try:
        value.encode()  # a lone surrogate would fail later, far from its cause
    except UnicodeEncodeError as error:
        raise FieldError("expected a string of valid characters") from error
    return value


def integer(value: object, *, least: int = 0) -> int:
    """Return an integer that fits 64 bits and is at least ``least``.

    Raises
    ------
    FieldError
        If it is none.
    """
    if type(value) is not int or not least <= value < 2**63:
        raise FieldError(f"expected an integer from {least}")
    return value


def number(value: object) -> float:
    """Return a finite number that is at least 0.

    Raises
    ------
    FieldError
        If it is none.
    """
    if type(value) is int:
        return float(integer(value))
    if not isinstance(value, float) or not math.isfinite(value) or value < 0:
        raise FieldError("expected a finite number from 0")
    return value


def items(value: object) -> list[Any]:
    """Return a list that is not too long.

    Raises
    ------
    FieldError
        If it is none.
    """
    if not isinstance(value, list) or len(value) > MAX_ITEMS:
        raise FieldError("expected a list of moderate length")
    return value


def strings(value: object) -> tuple[str, ...]:
    """Return a list of strings.

    Raises
    ------
    FieldError
        If it is none.
    """
    return tuple(text(item) for item in items(value))

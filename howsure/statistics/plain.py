"""Results of the statistics as plain data, for storage and for JSON."""

import math
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np


def to_plain(value: object) -> Any:  # noqa: ANN401 -- any JSON value
    """Return dicts, lists, strings, numbers, booleans and None in place of ``value``.

    Dataclasses give a dict by field, arrays and sequences a list, and keys of mappings turn into
    strings (``0.99`` into ``"0.99"``). Non-finite numbers turn into None, because JSON and
    PostgreSQL do not support them.

    Raises
    ------
    TypeError
        If a part has another type.
    """
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if value is None or isinstance(value, str | bool | int | float):
        return value
    if isinstance(value, np.ndarray | np.generic):
        return to_plain(value.tolist())
    if isinstance(value, Mapping):
        return {str(key): to_plain(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [to_plain(part) for part in value]
    if is_dataclass(value):
        return {field.name: to_plain(getattr(value, field.name)) for field in fields(value)}
    raise TypeError(f"value must be plain data, not {type(value).__name__}")

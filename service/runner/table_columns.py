"""Columns of tables that make a model's inputs, kept with how the model is run."""

from collections.abc import Mapping
from typing import Any

from service.runner.fields import FieldError, strings

KEY = "table_columns"


def with_table_columns(
    resolved: Mapping[str, Any], columns: Mapping[str, list[str]] | None
) -> dict[str, Any]:
    """Return `LoadedOnnxModel.resolved` with the columns that were told, if any were."""
    return {**resolved} if columns is None else {**resolved, KEY: dict(columns)}


def read_table_columns(resolved: Mapping[str, Any]) -> Mapping[str, tuple[str, ...]] | None:
    """Return the columns of each input; None where none were told.

    Raises
    ------
    FieldError
        If they are no lists of names.
    """
    found = resolved.get(KEY)
    if found is None:
        return None
    if not isinstance(found, dict):
        raise FieldError("the columns of tables")
    return {name: strings(columns) for name, columns in found.items()}

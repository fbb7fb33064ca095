"""Columns whose text is one of a few words."""

from typing import get_args

from sqlalchemy import Enum


def one_of(alternatives: object, *, name: str, length: int = 32) -> Enum:
    """Return the type of a text column that holds a word of this ``Literal``, and has a CHECK.

    The text is longer than any word of today, so that a new word changes the CHECK alone.
    """
    return Enum(
        *get_args(alternatives),
        native_enum=False,
        create_constraint=True,
        name=name,
        length=length,
    )

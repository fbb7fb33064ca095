"""Texts of strangers as cells of CSV: spreadsheets run what begins like a formula."""

from typing import TypeVar

Value = TypeVar("Value")

# With what a spreadsheet takes a cell for a formula; before a tab or a return it looks further.
FORMULA = ("=", "+", "-", "@", "\t", "\r")
QUOTE = "'"


def csv_cell(value: Value) -> Value | str:
    """Return a value as a cell: a text that begins like a formula with an apostrophe before it.

    Numbers are what they were: ``-1.5`` is no text. Programs that read such a file take one
    apostrophe off a text that begins with one and one of `FORMULA`.
    """
    if isinstance(value, str) and value.startswith(FORMULA):
        return QUOTE + value
    return value

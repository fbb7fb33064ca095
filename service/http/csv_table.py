"""CSV cells that spreadsheets do not run as formulas."""

from typing import TypeVar

Value = TypeVar("Value")

# First characters of a formula; spreadsheets skip a tab or a return before one.
FORMULA = ("=", "+", "-", "@", "\t", "\r")
QUOTE = "'"


def csv_cell(value: Value) -> Value | str:
    """Return a value as a cell; a text that begins like a formula gets an apostrophe in front.

    Numbers such as ``-1.5`` stay as they are. Programs that read the file remove one apostrophe
    before a character of `FORMULA`.
    """
    if isinstance(value, str) and value.startswith(FORMULA):
        return QUOTE + value
    return value

"""The number of a sample, as it comes in an address."""

from service.errors import InvalidInput

_MOST_DIGITS = 12


def row_number(text: str) -> int:
    """Return it.

    Raises
    ------
    InvalidInput
        If it is none.
    """
    if not (text.isascii() and text.isdigit() and len(text) <= _MOST_DIGITS):
        raise InvalidInput.at("row", "expected the number of a sample, from 0")
    return int(text)

"""Arrays out of JSON: rectangular, finite, numbers only."""

from functools import lru_cache
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from service.errors import InvalidInput

MAX_RANK = 16
_WHITESPACE = b" \t\r\n"
_OPENING = ord("[")
_WORDS = {
    "Expected": "expected",
    "`float`": "a number",
    "`int`": "a number",
    "`str`": "a string",
    "`bool`": "a boolean",
    "`null`": "null",
    "`array`": "a list",
    "`object`": "an object",
    "Number out": "the number is out",
    "JSON is malformed": "this is no valid JSON (NaN and Infinity are not)",
}


def read_tensor(text: bytes, *, location: str) -> NDArray[np.float64]:
    """Return the nested JSON list as a float64 array of the same rank.

    Raises
    ------
    InvalidInput
        If a value is no number (a string, a boolean, null), the lists are ragged or empty, or a
        number leaves the range of float32. The violation names the element.
    """
    rank = _nesting(text)
    if not 1 <= rank <= MAX_RANK:
        raise InvalidInput.at(location, "expected a list of rows, each a list of numbers")
    try:
        nested = _decoder(rank).decode(text)
    except msgspec.DecodeError as error:
        raise InvalidInput.at(*_explain(error, location)) from error
    try:
        array = np.array(nested, dtype=np.float64)
    except ValueError as error:
        raise InvalidInput.at(location, _ragged(nested)) from error
    if array.size == 0:
        raise InvalidInput.at(location, "expected at least one row with at least one value")
    _refuse_overflow(array, location)
    return array


@lru_cache(maxsize=MAX_RANK)
def _decoder(rank: int) -> "msgspec.json.Decoder[Any]":
    nested: Any = float
    for _ in range(rank):
        nested = list[nested]
    return msgspec.json.Decoder(nested)


def _nesting(text: bytes) -> int:
    """Count the brackets a tensor opens with, which is its rank if it is rectangular."""
    rank = 0
    for byte in text:
        if byte == _OPENING:
            rank += 1
        elif byte not in _WHITESPACE:
            break
        if rank > MAX_RANK:
            break
    return rank


def _explain(error: msgspec.DecodeError, location: str) -> tuple[str, str]:
    """Turn the decoder's `… - at `$[0][1]`` into our location and sentence."""
    sentence, _, path = str(error).partition(" - at `$")
    for theirs, ours in _WORDS.items():
        sentence = sentence.replace(theirs, ours)
    return location + path.rstrip("`"), sentence


def _ragged(nested: list[Any]) -> str:
    """Say where the nested lists stop being rectangular."""
    lengths = [len(row) for row in nested if isinstance(row, list)]
    odd = next((i for i, length in enumerate(lengths) if length != lengths[0]), None)
    if odd is None:
        return "the lists inside a row differ in length; every row must have the same shape"
    return f"row {odd} has {lengths[odd]} values where row 0 has {lengths[0]}"


def _refuse_overflow(array: NDArray[np.float64], location: str) -> None:
    too_large = ~(np.abs(array) <= np.finfo(np.float32).max)
    if too_large.any():
        index = "".join(f"[{i}]" for i in np.unravel_index(int(np.argmax(too_large)), array.shape))
        raise InvalidInput.at(location + index, "the number does not fit a 32-bit float")

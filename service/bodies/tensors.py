"""Arrays of numbers: out of JSON, and what holds for them wherever they came from."""

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from service.errors import InvalidInput, TooLarge

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


def read_list(text: bytes, *, location: str, max_rows: int | None = None) -> NDArray[np.float64]:
    """Return the nested JSON list as a float64 array of the same rank.

    Raises
    ------
    InvalidInput
        If a value is no number (a string, a boolean, null), or the lists are ragged or empty. The
        violation names the element.
    TooLarge
        If there are more rows than is allowed, counted before any list is made.
    """
    rank = _nesting(text)
    if not 1 <= rank <= MAX_RANK:
        raise InvalidInput.at(location, "expected a list of rows, each a list of numbers")
    if max_rows is not None:
        _refuse_rows(_count_rows(text, rank), location, max_rows)
    try:
        nested = _decoder(rank).decode(text)
    except msgspec.DecodeError as error:
        raise InvalidInput.at(*_explain(error, location)) from error
    try:
        array = np.array(nested, dtype=np.float64)
    except ValueError as error:
        raise InvalidInput.at(location, _ragged(nested)) from error
    check_shape(array.shape, location=location, max_rows=max_rows)
    return array


def check_shape(shape: Sequence[int], *, location: str, max_rows: int | None = None) -> None:
    """Refuse what is no array of rows, an empty one, and one with too many of them.

    Raises
    ------
    InvalidInput, TooLarge
    """
    if not 1 <= len(shape) <= MAX_RANK:
        raise InvalidInput.at(
            location, f"expected an array of 1 to {MAX_RANK} axes, got {len(shape)}"
        )
    if 0 in shape:
        raise InvalidInput.at(location, "expected at least one row with at least one value")
    if max_rows is not None:
        _refuse_rows(shape[0], location, max_rows)


def check_numbers(array: NDArray[Any], *, location: str) -> None:
    """Refuse what is no finite number of float32's range, which no answer could rest on.

    Raises
    ------
    InvalidInput
        The violation names the element.
    """
    if array.dtype.kind == "b":
        bad, rule = array.view(np.uint8) > 1, "expected true or false, a byte of 1 or 0"
    elif array.dtype.kind == "f":
        bad, rule = _not_finite(array), ""
    else:
        return
    if not bad.any():
        return
    index = np.unravel_index(int(np.argmax(bad)), bad.shape)
    if not rule:
        rule = "the number does not fit a 32-bit float"
        if not np.isfinite(array[index]):
            rule = f"expected a finite number, got {array[index]}"
    raise InvalidInput.at(location + "".join(f"[{i}]" for i in index), rule)


def is_surely_finite(array: NDArray[Any]) -> bool:
    """Tell fast that all numbers are finite; where it says no, `check_numbers` looks at each."""
    if array.dtype.char != "f":
        return False
    # One pass, no second array. What is no number stays so in a sum of squares; a sum that grows
    # out of float32, for which this of all products gives no warning, is no proof of anything.
    return math.isfinite(np.vdot(array, array))


def _not_finite(array: NDArray[np.floating]) -> NDArray[np.bool_]:
    if array.dtype.itemsize <= np.dtype(np.float32).itemsize:
        return np.asarray(~np.isfinite(array))
    return np.asarray(~(np.abs(array) <= np.finfo(np.float32).max))


def _refuse_rows(n_rows: int, location: str, max_rows: int) -> None:
    if n_rows > max_rows:
        raise TooLarge.at(location, f"expected at most {max_rows} rows, got {n_rows}")


def _count_rows(text: bytes, rank: int) -> int:
    """Count the rows of a list of this rank, if it is rectangular; of others too few or none."""
    if rank == 1:
        return text.count(b",") + 1
    # Behind the outermost bracket each row begins with one bracket for every other axis.
    return text.translate(None, _WHITESPACE).count(b"[" * (rank - 1), 1)


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

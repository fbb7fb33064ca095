"""Arrays of prediction requests: reading from JSON, and checks."""

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from service.errors import InvalidDataset, InvalidInput, TooLarge, shown
from service.runner.messages.frames import MAX_RANK

_WHITESPACE = b" \t\r\n"
_OPENING = ord("[")
_WORDS = {
    "Expected": "expected",
    "`float | null`": "a number",
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
    """Return the nested JSON list as a float64 array of the same rank; null becomes NaN.

    Raises
    ------
    InvalidInput
        If a value is neither a number nor null, or the lists are ragged or empty. The violation
        names the element.
    TooLarge
        If there are too many rows, which are counted before any list is made.
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
    """Refuse an array without rows or values, of too many axes, or with too many rows.

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


NO_VALUE = "expected a number, got a missing value (null or NaN)"
NEVER_MISSING = (
    f"{NO_VALUE}; the calibration set has none in this input, so nothing is known about such rows: "
    "fill it in as for the training of the model, or calibrate with samples that lack values"
)


def check_numbers(
    array: NDArray[Any], *, location: str, lacking: str = NO_VALUE, columns: Sequence[str] = ()
) -> None:
    """Refuse numbers that are not finite in float32, and booleans other than 0 and 1.

    ``lacking`` is the message about missing values, NaN; if it is empty, they are allowed.
    ``columns`` names those of a table, if they have names.

    Raises
    ------
    InvalidInput
        The violation names the element.
    """
    if array.dtype.kind == "b":
        bad, rule = array.view(np.uint8) > 1, "expected true or false, a byte of 1 or 0"
    elif array.dtype.kind == "f":
        bad, rule = _not_finite(array), ""
        if not lacking:
            bad &= ~np.isnan(array)
    else:
        return
    if not bad.any():
        return
    index = np.unravel_index(int(np.argmax(bad)), bad.shape)
    if not rule:
        rule = "the number does not fit a 32-bit float"
        if np.isnan(array[index]):
            rule = lacking
        elif not np.isfinite(array[index]):
            rule = f"expected a finite number, got {array[index]}"
    if len(columns) > 1 and array.shape[1:] == (len(columns),):
        rule = f"column {shown(columns[int(index[1])])}: {rule}"
    raise InvalidInput.at(location + "".join(f"[{i}]" for i in index), rule)


def is_surely_finite(array: NDArray[Any]) -> bool:
    """Tell in one pass that all numbers are finite; after False, `check_numbers` decides."""
    if array.dtype.char != "f":
        return False
    # A sum of squares keeps NaN and infinity and needs no second array. It may overflow itself,
    # without a warning, so only a finite sum proves anything.
    return math.isfinite(np.vdot(array, array))


def _not_finite(array: NDArray[np.floating]) -> NDArray[np.bool_]:
    if array.dtype.itemsize <= np.dtype(np.float32).itemsize:
        return np.asarray(~np.isfinite(array))
    return np.asarray(~(np.abs(array) <= np.finfo(np.float32).max))


def _refuse_rows(n_rows: int, location: str, max_rows: int) -> None:
    if n_rows > max_rows:
        raise TooLarge.at(location, f"expected at most {max_rows} rows, got {n_rows}")


def _count_rows(text: bytes, rank: int) -> int:
    """Count the rows of a rectangular list of this rank; too few for other lists."""
    if rank == 1:
        return text.count(b",") + 1
    # After the outermost bracket each row begins with one bracket for each other axis.
    return text.translate(None, _WHITESPACE).count(b"[" * (rank - 1), 1)


@lru_cache(maxsize=MAX_RANK)
def _decoder(rank: int) -> "msgspec.json.Decoder[Any]":
    nested: Any = float | None
    for _ in range(rank):
        nested = list[nested]
    return msgspec.json.Decoder(nested)


def _nesting(text: bytes) -> int:
    """Count the opening brackets, which are the rank of a rectangular list."""
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
    """Convert the decoder's `… - at `$[0][1]`` to our location and sentence."""
    sentence, _, path = str(error).partition(" - at `$")
    for theirs, ours in _WORDS.items():
        sentence = sentence.replace(theirs, ours)
    return location + path.rstrip("`"), sentence


def _ragged(nested: list[Any]) -> str:
    """Describe where the nested lists are not rectangular."""
    lengths = [len(row) for row in nested if isinstance(row, list)]
    odd = next((i for i, length in enumerate(lengths) if length != lengths[0]), None)
    if odd is None:
        return "the lists inside a row differ in length; every row must have the same shape"
    return f"row {odd} has {lengths[odd]} values where row 0 has {lengths[0]}"


PLACE = "body"


@contextmanager
def as_input() -> Iterator[None]:
    """Turn errors about sets into errors about requests."""
    try:
        yield
    except InvalidDataset as error:
        raise InvalidInput(error.message, error.violations) from error

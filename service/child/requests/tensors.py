"""Arrays of prediction requests: reading from JSON, and checks."""

import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Literal, TypeAlias

import msgspec
import numpy as np
from numpy.typing import NDArray

from howsure.statistics.measures import SCORE
from service.child.reading.npy_header import NpyHeader
from service.child.reading.output_checks import SUM_TOLERANCE, is_off, sum_advice
from service.errors import InvalidDataset, InvalidInput, TooLarge, shown
from service.runner.messages.dataset import PAIRS
from service.runner.messages.onnx_models import ANY_INPUT

MAX_RANK = 16
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


def check_numbers(array: NDArray[Any], *, location: str, lacking: str = NO_VALUE) -> None:
    """Refuse numbers that are not finite in float32, and booleans other than 0 and 1.

    ``lacking`` is the message about missing values, NaN; if it is empty, they are allowed.

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


def check_claims(header: NpyHeader, *, size: int, place: str, max_rows: int) -> None:
    """Refuse too many rows, an empty array, and a header that does not fit the ``size`` bytes.

    Raises
    ------
    InvalidInput, TooLarge
    """
    check_shape(header.shape, location=place, max_rows=max_rows)
    if header.file_bytes != size:
        raise InvalidInput.at(
            place,
            f"its header claims {header.file_bytes} bytes, shape {list(header.shape)} of "
            f"{header.dtype.name}, but there are {size}",
        )


# Of any dtype of numbers; numpy's stubs allow no arithmetic on NDArray[np.generic].
Array: TypeAlias = NDArray[Any]
ScoreKind: TypeAlias = Literal["logits", "probabilities"]

SCORE_KINDS: tuple[ScoreKind, ...] = ("logits", "probabilities")
# The scores of pairs: in requests, in files of arrays, and as rows that a set was read to.
SCORES: Literal["scores"] = "scores"
_PAIR_ARRAYS = (SCORES, SCORE, ANY_INPUT)


@dataclass(frozen=True, eq=False)
class SentPicture:
    """A picture that is not yet decoded, and its location in errors."""

    place: str
    content: bytes


@dataclass(frozen=True, eq=False)
class PredictRequest:
    """One request. Its arrays hold numbers or booleans; nothing else is checked yet.

    Attributes
    ----------
    arrays : mapping of str to ndarray
        A row per sample: the model's inputs by name, where ``inputs`` may stand for the only one;
        or ``logits``, or ``probabilities``.
    supplied : mapping of str to ndarray
        Supplied uncertainties of the rows, by name.
    pictures : sequence of SentPicture
        A row each, in place of arrays.
    named_rows : bytes
        JSON of rows by the names of their columns, in place of arrays; not decoded yet.
    named_kind : str
        What these rows hold: ``inputs``, ``logits`` or ``probabilities``.
    calibration : str or None
        The id, name, or ``name@version`` in a JSON body; other bodies name no calibration.
    """

    arrays: Mapping[str, Array]
    supplied: Mapping[str, Array] = field(default_factory=dict)
    pictures: Sequence[SentPicture] = ()
    named_rows: bytes = b""
    named_kind: str = ANY_INPUT
    calibration: str | None = None


def model_inputs(
    request: PredictRequest, names: Iterable[str], *, max_rows: int
) -> dict[str, Array]:
    """Return the model's inputs by name.

    `check_finite` checks their numbers, `fit_inputs` their names, types and lengths.

    Raises
    ------
    InvalidInput
        If the request holds outputs, or one array for a model with several inputs.
    TooLarge
        If there are more rows than is allowed.
    """
    known = list(names)
    arrays = dict(request.arrays)
    if len(known) == 1 and arrays.keys() == {ANY_INPUT}:
        arrays = {known[0]: arrays[ANY_INPUT]}
    elif request.named_rows or (
        arrays.keys() <= {*SCORE_KINDS, SCORES, PAIRS} and not arrays.keys() & set(known)
    ):
        raise InvalidInput.at(ANY_INPUT, "this calibration runs a model; send its `inputs`")
    elif arrays.keys() == {ANY_INPUT} and ANY_INPUT not in known:
        raise InvalidInput.at(
            ANY_INPUT, f"the model has several inputs; name them: {', '.join(known)}"
        )
    for name, array in arrays.items():
        check_shape(array.shape, location=_place(name, known), max_rows=max_rows)
    return arrays


def check_finite(
    arrays: Mapping[str, Array], names: Sequence[str], may_lack: Collection[str]
) -> None:
    """Refuse inputs with numbers that are not finite in float32.

    ``names`` are the model's inputs; those that ``may_lack`` values may have NaN.

    Raises
    ------
    InvalidInput
        The violation names the element.
    """
    for name, array in arrays.items():
        lacking = "" if name in may_lack else NEVER_MISSING
        check_numbers(array, location=_place(name, names), lacking=lacking)


def class_scores(
    request: PredictRequest, *, n_classes: int, max_rows: int
) -> tuple[ScoreKind, NDArray[np.float64]]:
    """Return logits, or the logarithms of probabilities, of shape (n_samples, n_classes).

    Raises
    ------
    InvalidInput
        If there are none, the shape differs or a row is no distribution.
    TooLarge
        If there are more rows than is allowed.
    """
    kind = next((kind for kind in SCORE_KINDS if request.arrays.keys() == {kind}), None)
    if kind is None:
        raise InvalidInput.at(
            "inputs", "this calibration has no model; send its `logits` or `probabilities`"
        )
    given = request.arrays[kind]
    check_shape(given.shape, location=kind, max_rows=max_rows)
    if given.ndim != 2 or given.shape[1] != n_classes:  # noqa: PLR2004 - a matrix
        message = f"expected shape [rows, {n_classes}], got {list(given.shape)}"
        if (kind, n_classes) == ("probabilities", 2) and given.shape[1:] in {(), (1,)}:
            message += "; send both classes of each row, [[1 - p, p], ...]"
        raise InvalidInput.at(kind, message)
    scores = _reals(given, kind)
    if kind == "logits":
        return kind, scores
    bad = (scores < -SUM_TOLERANCE).any(axis=1) | is_off(scores.sum(axis=1))
    if bad.any():
        row = int(np.argmax(bad))
        fix = "" if scores[row].min() < 0.0 else f"; {sum_advice(scores[row])}"
        raise InvalidInput.at(
            f"probabilities[{row}]",
            "expected non-negative values that sum to 1 within 0.001, got "
            f"{scores[row].sum():.6g}{fix}",
        )
    with np.errstate(divide="ignore"):
        return kind, np.log(np.maximum(scores, 0.0))


def pair_scores(request: PredictRequest, *, max_rows: int) -> NDArray[np.float64]:
    """Return the scores of a request for a calibration of pairs, shape (n_samples,).

    Raises
    ------
    InvalidInput
        If there are none, they are not one number a row, or one is not finite.
    TooLarge
        If there are more rows than is allowed.
    """
    if PAIRS in request.arrays and SCORE in request.supplied:
        return -_reals(request.supplied[SCORE], SCORES)
    name = next((name for name in _PAIR_ARRAYS if request.arrays.keys() == {name}), None)
    if name is None:
        raise InvalidInput.at(
            SCORES, "this calibration takes `scores`, one number a row; send them alone"
        )
    given = request.arrays[name]
    check_shape(given.shape, location=name, max_rows=max_rows)
    if given.ndim != 1:
        raise InvalidInput.at(name, f"expected one number a row, got shape {list(given.shape)}")
    return _reals(given, name)


def supplied_columns(
    request: PredictRequest, names: Iterable[str], *, n_rows: int
) -> dict[str, NDArray[np.float32]]:
    """Return the supplied uncertainties that are needed, by name, one per row.

    Raises
    ------
    InvalidInput
        If one is missing or unknown, has another length, or a number that is not finite.
    """
    needed = list(names)
    for name in request.supplied:
        if name not in needed:
            known = ", ".join(needed) or "none"
            raise InvalidInput.at(
                "supplied", f"no event is answered by {shown(name)}; used: {known}"
            )
    found = {}
    for name in needed:
        place = f"supplied.{name}"
        if name not in request.supplied:
            raise InvalidInput.at(place, "an event is answered by this measure; send one a row")
        values = request.supplied[name]
        if values.shape != (n_rows,):
            raise InvalidInput.at(place, f"expected {n_rows} numbers, one a row")
        found[name] = _reals(values, place).astype(np.float32)
    return found


def _place(name: str, names: Sequence[str]) -> str:
    """Return the location of an input in messages; a single input needs no name."""
    return ANY_INPUT if len(names) == 1 else f"{ANY_INPUT}.{shown(name)[1:-1]}"


def _reals(array: Array, place: str) -> NDArray[np.float64]:
    if array.dtype.kind == "b":
        raise InvalidInput.at(place, "expected numbers, got booleans")
    check_numbers(array, location=place)
    return array.astype(np.float64, copy=False)

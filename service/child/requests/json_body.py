"""``application/json`` bodies: rows as nested lists, or as base64 of their bytes."""

import math
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from itertools import chain
from math import prod
from struct import Struct, error
from typing import Any, Literal, TypeAlias

import msgspec
import numpy as np
from numpy.typing import NDArray

from service.child.magic_bytes import other_format
from service.child.requests.limits import BodyLimits
from service.child.requests.named_rows import RECORDS
from service.child.requests.predict_request import (
    SCORE_KINDS,
    SCORES,
    PredictRequest,
)
from service.child.requests.tensors import (
    check_shape,
    is_surely_finite,
    read_list,
)
from service.errors import InvalidInput, MalformedRequest, TooLarge, did_you_mean, shown
from service.runner.messages.frames import Array
from service.runner.messages.onnx_models import ANY_INPUT

Float: TypeAlias = Literal["float16", "float32", "float64"]
Signed: TypeAlias = Literal["int8", "int16", "int32", "int64"]
Unsigned: TypeAlias = Literal["bool", "uint8", "uint16", "uint32", "uint64"]


class EncodedTensor(msgspec.Struct, forbid_unknown_fields=True):
    """An array, row-major and little-endian, its bytes in standard base64 with padding."""

    b64: bytes
    dtype: Float | Signed | Unsigned
    shape: list[int]


_decoder = msgspec.json.Decoder(EncodedTensor)


def is_encoded(parts: Mapping[str, msgspec.Raw]) -> bool:
    """Tell whether an object is an encoded array; a model's inputs are never strings."""
    return "b64" in parts and bytes(parts["b64"]).startswith(b'"')


def read_encoded(text: bytes, *, location: str, max_rows: int) -> Array:
    """Return the array that the object encodes.

    Raises
    ------
    InvalidInput
        If a field is missing, unknown or of the wrong type, or the number of bytes does not match
        dtype and shape.
    TooLarge
        If there are more rows than is allowed.
    """
    try:
        found = _decoder.decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise InvalidInput.at(location, shown(str(error))[1:-1]) from error
    if any(length < 0 for length in found.shape):
        raise InvalidInput.at(f"{location}.shape", f"expected no negative length: {found.shape}")
    check_shape(found.shape, location=location, max_rows=max_rows)
    dtype = np.dtype(found.dtype)
    needed = math.prod(found.shape) * dtype.itemsize
    if len(found.b64) != needed:
        raise InvalidInput.at(
            f"{location}.b64",
            f"expected {needed} bytes, shape {found.shape} of {found.dtype}, got {len(found.b64)}",
        )
    values = np.frombuffer(found.b64, dtype.newbyteorder("<")).reshape(found.shape)
    return values.astype(dtype, copy=False)


MAX_RANK = 8


class JsonRows:
    """Reads rows of one shape straight to float32.

    Everything else, invalid bodies included, is left to `read_json_body`.

    Parameters
    ----------
    sizes
        The shape of one row.
    """

    def __init__(self, sizes: Sequence[int]) -> None:
        self._sizes = tuple(sizes)
        # Packing fails for numbers beyond float32, and for more or fewer numbers.
        self._line = Struct(f"{sizes[-1]}f")
        self._lists_in_row = sum(prod(sizes[:rank]) for rank in range(len(sizes)))
        inputs: Any = tuple[float, ...]
        for _ in sizes:
            inputs = list[inputs]
        fields = [("calibration", str), (ANY_INPUT, inputs)]
        body = msgspec.defstruct("PlainBody", fields, forbid_unknown_fields=True)
        self._decoder = msgspec.json.Decoder(body)

    @classmethod
    def of(cls, dtype: str, shape: Sequence[int | None] | None) -> "JsonRows | None":
        """Return the reader for an input, None if the shape of its rows is not fixed."""
        sizes = [size for size in (shape or ())[1:] if size]
        if (
            dtype != "float32"
            or not 1 <= len(sizes) <= MAX_RANK
            or len(sizes) + 1 != len(shape or ())
        ):
            return None
        return cls(sizes)

    def read(self, body: bytes, *, calibration: str, max_rows: int) -> NDArray[np.float32] | None:
        """Return the rows of a body that names this calibration."""
        # The lists are counted before any is made.
        if body.count(b"[") > 1 + max_rows * self._lists_in_row:
            return None
        try:
            found: Any = self._decoder.decode(body)
            lists = found.inputs
            n_rows = len(lists)
            for size in self._sizes[:-1]:
                if set(map(len, lists)) != {size}:
                    return None
                lists = list(chain.from_iterable(lists))
            packed = b"".join([self._line.pack(*line) for line in lists])
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, OverflowError, error):
            return None
        if found.calibration != calibration or not 1 <= n_rows <= max_rows:
            return None
        rows = np.frombuffer(packed, np.float32).reshape(n_rows, *self._sizes)
        # A number may round to infinity; `read_json_body` judges it.
        return rows if is_surely_finite(rows) else None


# The maximum number of inputs of an ONNX model.
MAX_ARRAYS = 1024


class JsonBody(msgspec.Struct, forbid_unknown_fields=True):
    """The outer object, with exactly one kind of rows: inputs, outputs or scores."""

    calibration: str
    inputs: msgspec.Raw = msgspec.Raw()
    logits: msgspec.Raw = msgspec.Raw()
    probabilities: msgspec.Raw = msgspec.Raw()
    scores: msgspec.Raw = msgspec.Raw()
    supplied: msgspec.Raw = msgspec.Raw()


# Up to 400 characters without an escape; anything else is left to the decoder.
_NAMED_FIRST = re.compile(
    rb'\s{0,64}\{\s{0,64}"calibration"\s{0,64}:\s{0,64}"([^"\\\x00-\x1f]{1,400})"'
)
_NAMED = re.compile(rb'"calibration"\s{0,64}:\s{0,64}"([^"\\\x00-\x1f]{1,400})"')
MOST_SCANNED_BYTES = 2**20
NEAR_BYTES = 2**12
# A name that may stand before it, and what Python writes for numbers that JSON does not have.
_NO_NUMBER = re.compile(
    rb'(?:"([^"\\\x00-\x1f]{1,60})"\s{0,8}:|[\[,])\s{0,64}(NaN|-?Infinity)\s{0,64}[\],}]'
)
_NAMED_ROWS = re.compile(rb"\s*\[\s*\{")
_body_decoder = msgspec.json.Decoder(JsonBody)
_by_name = msgspec.json.Decoder(dict[str, msgspec.Raw])


def named_calibration(body: bytes) -> str:
    """Return the calibration that a body names, reading no more of the body than necessary.

    A name at the beginning is taken for the only one; the child reads the whole body and compares.
    A large body must have it near its beginning or its end: reading all of it would stop the event
    loop for long.

    Raises
    ------
    MalformedRequest, InvalidInput
        If no name is found and the body is invalid.
    """
    found = _NAMED_FIRST.match(body)
    if found is None and len(body) > MOST_SCANNED_BYTES:
        found = _NAMED.search(body, 0, NEAR_BYTES) or _NAMED.search(body, len(body) - NEAR_BYTES)
        if found is None:
            raise InvalidInput.at(
                "calibration",
                "expected it as the first or the last field, because this JSON body has more than "
                "1 MiB; move it there",
            )
    if found is not None:
        with suppress(UnicodeDecodeError):
            return found[1].decode()
    return _outer(body).calibration


def read_json_body(body: bytes, limits: BodyLimits) -> PredictRequest:
    """Return the arrays of a request.

    Raises
    ------
    MalformedRequest
        If the body is not JSON.
    InvalidInput
        If a field is missing, unknown or of the wrong type, or not a rectangular array.
    TooLarge
        If there are more rows than is allowed.
    """
    limits.check_json(body)
    found = _outer(body)
    max_rows = limits.max_rows
    kind = _only_kind(found)
    text, named_rows = bytes(getattr(found, kind)), b""
    arrays: dict[str, Array] = {}
    if kind != SCORES and _NAMED_ROWS.match(text):
        named_rows = text
    elif kind == ANY_INPUT and _is_object(text):
        arrays = _inputs(text, max_rows)
    else:
        arrays = {kind: _array(text, kind, max_rows)}
    text = bytes(found.supplied)
    supplied = _arrays(_parts(text, "supplied"), "supplied", max_rows) if text else {}
    return PredictRequest(
        arrays,
        supplied,
        named_rows=named_rows,
        named_kind=kind,
        calibration=found.calibration,
    )


def _outer(body: bytes) -> JsonBody:
    try:
        return _body_decoder.decode(body)
    except msgspec.ValidationError as error:
        # The message quotes field names as they were sent.
        raise InvalidInput.at("body", shown(str(error))[1:-1] + _known_fields(error)) from error
    except RecursionError as error:
        raise MalformedRequest.at("body", "the lists are nested too deeply") from error
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        if no_number := _NO_NUMBER.search(body):
            column = f" at `{no_number[1].decode('utf-8', 'replace')}`" if no_number[1] else ""
            raise MalformedRequest.at(
                "body",
                f"expected finite numbers, got {no_number[2].decode()}{column}, which JSON does "
                "not have; write null for a missing value",
            ) from error
        name, _ = other_format(body) or ("JSON", "")
        got = f"expected a JSON object: {error}"
        if name != "JSON":
            got = f"expected a JSON object, got {name}; send it with its own Content-Type"
        raise MalformedRequest.at("body", got) from error


def _known_fields(error: msgspec.ValidationError) -> str:
    """Return the nearest field to an unknown one, or all fields."""
    unknown = re.search("unknown field `(.*)`", str(error), re.DOTALL)
    if unknown is None:
        return ""
    fields = JsonBody.__struct_fields__
    return did_you_mean(unknown[1], fields) or f"; known fields: {', '.join(fields)}"


def _only_kind(found: JsonBody) -> str:
    given = [field for field in (ANY_INPUT, *SCORE_KINDS, SCORES) if getattr(found, field)]
    if len(given) != 1:
        names = " and ".join(given) or "none"
        raise InvalidInput.at(
            "body",
            f"expected exactly one of inputs, logits, probabilities and scores, got {names}",
        )
    return given[0]


def _inputs(text: bytes, max_rows: int) -> dict[str, Array]:
    """Return the arrays of an object: one encoded array, or one of each name."""
    parts = _parts(text, ANY_INPUT)
    if is_encoded(parts):
        return {ANY_INPUT: read_encoded(text, location=ANY_INPUT, max_rows=max_rows)}
    if not parts:
        raise InvalidInput.at(ANY_INPUT, "expected at least one array, got an empty object")
    if not any(bytes(part).lstrip().startswith((b"[", b"{")) for part in parts.values()):
        raise InvalidInput.at(
            ANY_INPUT, "expected arrays by input name; wrap one row of named values in a list"
        )
    if any(
        _is_object(bytes(part)) and not is_encoded(_parts(bytes(part), ANY_INPUT))
        for part in parts.values()
    ):
        raise InvalidInput.at(ANY_INPUT, f"expected arrays by input name, got objects; {RECORDS}")
    return _arrays(parts, ANY_INPUT, max_rows)


def _arrays(parts: dict[str, msgspec.Raw], location: str, max_rows: int) -> dict[str, Array]:
    return {
        name: _array(bytes(part), f"{location}.{shown(name)[1:-1]}", max_rows)
        for name, part in parts.items()
    }


def _array(text: bytes, location: str, max_rows: int) -> Array:
    read = read_encoded if _is_object(text) else read_list
    return read(text, location=location, max_rows=max_rows)


def _parts(text: bytes, location: str) -> dict[str, msgspec.Raw]:
    try:
        parts = _by_name.decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise InvalidInput.at(location, shown(str(error))[1:-1]) from error
    if len(parts) > MAX_ARRAYS:
        raise TooLarge.at(location, f"expected at most {MAX_ARRAYS} arrays, got {len(parts)}")
    return parts


def _is_object(text: bytes) -> bool:
    return text.lstrip()[:1] == b"{"

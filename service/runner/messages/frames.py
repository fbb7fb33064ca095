"""Frames between the service and a child process: a fixed header, a little JSON, raw arrays.

Nothing here can execute what it reads, and every size is checked before memory is taken for it:
the other side may be in the hands of whoever wrote the ONNX model.
"""

import json
import struct
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from math import prod
from typing import Any, NamedTuple, NoReturn, TypeAlias

import numpy as np
from numpy.typing import NDArray

# Of any dtype in DTYPES; numpy's stubs allow no arithmetic on NDArray[np.generic].
Array: TypeAlias = NDArray[Any]
Buffer: TypeAlias = bytes | memoryview

MAGIC = b"HSR1"
HEADER = struct.Struct("<4sHHQIIQ")
MAX_FIELDS_BYTES = 8 * 2**20
# Of answers that describe no model: a little JSON makes large objects.
SMALL_FIELDS_BYTES = 2**16
MAX_TENSOR_BYTES = 2**31
MAX_TENSORS = 1024
MAX_RANK = 16
ALIGNMENT = 64
# The labels of a RECORD request; no input of a model may begin like this.
LABELS = "howsure_labels"
DTYPES = {
    name: np.dtype(name).newbyteorder("<")
    for name in (
        *("bool", "float16", "float32", "float64"),
        *("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
    )
}
# By type: asking a dtype for its name takes longer than sending a row.
CODES = {dtype: name for name, dtype in DTYPES.items()}
COPIED_BYTES = 2**16


class FrameError(Exception):
    """The bytes are no frame of this protocol, or exceed its limits."""


class Kind(IntEnum):
    """What a frame asks for; its answer carries the same kind."""

    READY = 1
    PROBE = 2
    LOAD = 3
    RECORD = 4
    PREDICT = 5
    EXPORT = 6
    BATCH = 7
    READ = 8
    ROWS = 9


class Status(IntEnum):
    """Whether an answer is a result or a failure."""

    OK = 0
    FAILED = 1


_KINDS = {kind.value: kind for kind in Kind}
_STATUSES = {status.value: status for status in Status}


class Header(NamedTuple):
    """The first bytes of a frame. ``budget_ms`` is the time the child may take; 0 is no limit."""

    kind: Kind
    status: Status
    sequence: int
    budget_ms: int
    fields_bytes: int
    tensor_bytes: int


@dataclass(frozen=True, eq=False)
class Frame:
    """One request or answer: JSON fields, and arrays by name."""

    kind: Kind
    sequence: int
    fields: Mapping[str, Any] = field(default_factory=dict)
    tensors: Mapping[str, Array] = field(default_factory=dict)
    status: Status = Status.OK
    budget_ms: int = 0


def encode(frame: Frame) -> list[Buffer]:
    """Return the frame as buffers to be sent one after the other; arrays are not copied.

    Raises
    ------
    FrameError
        If a dtype has no code, or a size is above its limit.
    """
    table: list[list[object]] = []
    buffers: list[Buffer] = []
    tensor_bytes = 0
    for name, given in frame.tensors.items():
        code = code_of(given.dtype)
        if code is None or given.ndim > MAX_RANK:
            raise FrameError(f"an array of {given.dtype} with {given.ndim} axes cannot be sent")
        table.append([name, code, given.shape])
        tensor_bytes += given.nbytes + _padding(given.nbytes)
        if tensor_bytes > MAX_TENSOR_BYTES:
            raise FrameError(f"the arrays exceed the {MAX_TENSOR_BYTES} bytes of a frame")
        if given.nbytes:
            array = np.ascontiguousarray(given, dtype=DTYPES[code])
            buffers += [array.data.cast("B"), bytes(_padding(array.nbytes))]
    fields = _dump({"fields": dict(frame.fields), "tensors": table})
    if len(table) > MAX_TENSORS:
        raise FrameError(f"{len(table)} arrays are too many for one frame")
    if len(fields) > MAX_FIELDS_BYTES:
        raise FrameError(f"{len(fields)} bytes of fields are too many for one frame")
    header = HEADER.pack(
        *(MAGIC, frame.kind, frame.status, frame.sequence),
        *(frame.budget_ms, len(fields), tensor_bytes),
    )
    if tensor_bytes <= COPIED_BYTES:
        return [b"".join([header, fields, *buffers])]
    return [header + fields, *(buffer for buffer in buffers if len(buffer))]


def code_of(dtype: np.dtype[Any]) -> str | None:
    """Return the name under which arrays of this type are sent, None if they are not."""
    return CODES.get(dtype) or (dtype.name if dtype.name in DTYPES else None)


def parse_header(
    data: Buffer,
    *,
    max_fields_bytes: int = MAX_FIELDS_BYTES,
    max_tensor_bytes: int = MAX_TENSOR_BYTES,
) -> Header:
    """Read a header.

    Raises
    ------
    FrameError
        If it is none, or announces more than the reader is willing to take.
    """
    if len(data) != HEADER.size:
        raise FrameError("a header is cut short")
    magic, kind, status, sequence, budget_ms, fields_bytes, tensor_bytes = HEADER.unpack(data)
    if magic != MAGIC:
        raise FrameError("a header does not begin as it must")
    if fields_bytes > max_fields_bytes or tensor_bytes > max_tensor_bytes:
        raise FrameError(f"a frame announces {fields_bytes} + {tensor_bytes} bytes")
    try:
        # By a table: to call an enumeration takes longer than all else here.
        known = _KINDS[kind], _STATUSES[status]
    except KeyError as error:
        raise FrameError("a header's kind or status is unknown") from error
    # Past a named tuple's own constructor, which is in Python.
    return tuple.__new__(Header, (*known, sequence, budget_ms, fields_bytes, tensor_bytes))


def parse_body(header: Header, fields: Buffer, tensors: Buffer) -> Frame:
    """Read what follows a header; the arrays are views of ``tensors``.

    Raises
    ------
    FrameError
        If the JSON is not as it must be, or the arrays do not fill ``tensors`` exactly.
    """
    try:
        body = json.loads(bytes(fields), parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise FrameError("a frame's fields are no JSON") from error
    if not isinstance(body, dict) or body.keys() != {"fields", "tensors"}:
        raise FrameError("a frame's fields have another layout")
    if not isinstance(body["fields"], dict) or not isinstance(body["tensors"], list):
        raise FrameError("a frame's fields have another layout")
    return Frame(
        kind=header.kind,
        sequence=header.sequence,
        fields=body["fields"],
        tensors=_parse_tensors(body["tensors"], tensors),
        status=header.status,
        budget_ms=header.budget_ms,
    )


def decode(data: bytes) -> Frame:
    """Read one whole frame.

    Raises
    ------
    FrameError
        If the bytes are not exactly one frame.
    """
    header = parse_header(data[: HEADER.size])
    end = HEADER.size + header.fields_bytes
    if len(data) != end + header.tensor_bytes:
        raise FrameError("a frame is shorter or longer than it announces")
    return parse_body(header, data[HEADER.size : end], data[end:])


def _dump(body: Mapping[str, object]) -> bytes:
    try:
        return json.dumps(body, allow_nan=False).encode()
    except (TypeError, ValueError) as error:
        raise FrameError("a frame's fields cannot be written as JSON") from error


def _parse_tensors(table: list[Any], data: Buffer) -> dict[str, Array]:
    if len(table) > MAX_TENSORS:
        raise FrameError("a frame holds too many arrays")
    arrays: dict[str, Array] = {}
    offset = 0
    for entry in table:
        name, dtype, shape = _parse_entry(entry)
        size = prod(shape) * dtype.itemsize
        if name in arrays or offset + size > len(data):
            raise FrameError("a frame's arrays repeat a name or exceed its size")
        arrays[name] = _view(data, dtype, shape, offset)
        offset += size + _padding(size)
    if offset != len(data):
        raise FrameError("a frame's arrays do not fill it")
    return arrays


def _view(data: Buffer, dtype: np.dtype[Any], shape: tuple[int, ...], offset: int) -> Array:
    count = prod(shape)
    try:
        if not count:
            return np.empty(shape, dtype=dtype)
        return np.frombuffer(data, dtype=dtype, count=count, offset=offset).reshape(shape)
    except ValueError as error:  # axes beside an empty one that overflow together
        raise FrameError("a frame's array has an impossible shape") from error


def _parse_entry(entry: object) -> tuple[str, np.dtype[Any], tuple[int, ...]]:
    match entry:
        case [str(name), str(code), list(shape)] if code in DTYPES and len(shape) <= MAX_RANK:
            if all(type(n) is int and 0 <= n <= MAX_TENSOR_BYTES for n in shape):
                return name, DTYPES[code], tuple(shape)
    raise FrameError("a frame's table of arrays has another layout")


def _padding(size: int) -> int:
    """Return what brings the next array to an aligned offset."""
    return -size % ALIGNMENT


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON")

"""Frames between the service and a child process: a fixed header, a little JSON, raw arrays.

Reading a frame executes nothing, and every size is checked before memory is allocated: the author
of an ONNX model may control the other side.
"""

import json
import struct
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from math import prod
from typing import Annotated, Any, NamedTuple, TypeAlias

import msgspec
import numpy as np
from msgspec import Meta
from numpy.typing import NDArray

# Of any dtype in DTYPES; numpy's stubs allow no arithmetic on NDArray[np.generic].
Array: TypeAlias = NDArray[Any]
Buffer: TypeAlias = bytes | memoryview

MAGIC = b"HSR1"
HEADER = struct.Struct("<4sHHQIIQ")
MAX_FIELDS_BYTES = 8 * 2**20
# Of answers: a little JSON makes large objects.
SMALL_FIELDS_BYTES = 2**16
MAX_TENSOR_BYTES = 2**31
MAX_TENSORS = 1024
MAX_RANK = 16
ALIGNMENT = 64
# The labels of a RECORD request; no model input has a name with this prefix.
LABELS = "howsure_labels"
DTYPES = {
    name: np.dtype(name).newbyteorder("<")
    for name in (
        *("bool", "float16", "float32", "float64"),
        *("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
    )
}
# By dtype: `dtype.name` takes longer than sending a row.
CODES = {dtype: name for name, dtype in DTYPES.items()}
COPIED_BYTES = 2**16


class FrameError(Exception):
    """The bytes are not a frame of this protocol, or exceed its limits."""


class Kind(IntEnum):
    """The kind of a request; its answer has the same kind."""

    READY = 1
    PROBE = 2
    LOAD = 3
    RECORD = 4
    PREDICT = 5
    EXPORT = 6
    BATCH = 7
    READ = 8
    ROWS = 9
    LOAD_SCORES = 10
    FIT = 11


class Status(IntEnum):
    """Whether an answer is a result, a failure, or tells how far the work is."""

    OK = 0
    FAILED = 1
    PROGRESS = 2


_KINDS = {kind.value: kind for kind in Kind}
_STATUSES = {status.value: status for status in Status}


class Header(NamedTuple):
    """The first bytes of a frame. ``budget_ms`` limits the child's time; 0 means no limit."""

    kind: Kind
    status: Status
    sequence: int
    budget_ms: int
    fields_bytes: int
    tensor_bytes: int


@dataclass(frozen=True, eq=False)
class Frame:
    """A request or an answer: JSON fields, and arrays by name."""

    kind: Kind
    sequence: int
    fields: Mapping[str, Any] = field(default_factory=dict)
    tensors: Mapping[str, Array] = field(default_factory=dict)
    status: Status = Status.OK
    budget_ms: int = 0


_Size: TypeAlias = Annotated[int, Meta(ge=0, le=MAX_TENSOR_BYTES)]
_Shape: TypeAlias = Annotated[list[_Size], Meta(max_length=MAX_RANK)]


class _Body(msgspec.Struct, forbid_unknown_fields=True):
    """The JSON of a frame. ``tensors`` has name, dtype and shape of each array."""

    fields: dict[str, Any]
    tensors: Annotated[list[tuple[str, str, _Shape]], Meta(max_length=MAX_TENSORS)]


_bodies = msgspec.json.Decoder(_Body)


def encode(frame: Frame) -> list[Buffer]:
    """Return the buffers of a frame, in order; arrays are not copied.

    Raises
    ------
    FrameError
        If a dtype has no code, or a size exceeds its limit.
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
        # All records of a fit go together, from the parent, which the child trusts.
        if tensor_bytes > MAX_TENSOR_BYTES and frame.kind is not Kind.FIT:
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
    """Return the name of a dtype in frames; None if such arrays cannot be sent."""
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
        If it is invalid, or announces more than the reader accepts.
    """
    if len(data) != HEADER.size:
        raise FrameError("the header ends early")
    magic, kind, status, sequence, budget_ms, fields_bytes, tensor_bytes = HEADER.unpack(data)
    if magic != MAGIC:
        raise FrameError("the header does not begin with the magic number")
    if fields_bytes > max_fields_bytes or tensor_bytes > max_tensor_bytes:
        raise FrameError(f"the frame announces {fields_bytes} + {tensor_bytes} bytes")
    try:
        # A table: calling an enumeration takes longer than the rest of this function.
        known = _KINDS[kind], _STATUSES[status]
    except KeyError as error:
        raise FrameError("the kind or status is unknown") from error
    # This skips the named tuple's constructor, which is written in Python.
    return tuple.__new__(Header, (*known, sequence, budget_ms, fields_bytes, tensor_bytes))


def parse_body(header: Header, fields: Buffer, tensors: Buffer) -> Frame:
    """Read the bytes after a header; the arrays are views of ``tensors``.

    Raises
    ------
    FrameError
        If the JSON is invalid, or the arrays do not fill ``tensors`` exactly.
    """
    try:
        body = _bodies.decode(fields)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise FrameError(f"the JSON is invalid: {error}") from error
    return Frame(
        kind=header.kind,
        sequence=header.sequence,
        fields=body.fields,
        tensors=_parse_tensors(body.tensors, tensors),
        status=header.status,
        budget_ms=header.budget_ms,
    )


def decode(data: bytes) -> Frame:
    """Read one complete frame.

    Raises
    ------
    FrameError
        If the bytes are not exactly one frame.
    """
    header = parse_header(data[: HEADER.size])
    end = HEADER.size + header.fields_bytes
    if len(data) != end + header.tensor_bytes:
        raise FrameError("the frame is shorter or longer than announced")
    return parse_body(header, data[HEADER.size : end], data[end:])


def _dump(body: Mapping[str, object]) -> bytes:
    try:
        return json.dumps(body, allow_nan=False).encode()
    except (TypeError, ValueError) as error:
        raise FrameError("the fields cannot be written as JSON") from error


def _parse_tensors(table: list[tuple[str, str, _Shape]], data: Buffer) -> dict[str, Array]:
    arrays: dict[str, Array] = {}
    offset = 0
    for name, code, shape in table:
        dtype = DTYPES.get(code)
        if dtype is None or name in arrays:
            raise FrameError("an array has an unknown dtype, or the name of another one")
        size = prod(shape) * dtype.itemsize
        if offset + size > len(data):
            raise FrameError("the arrays exceed the frame")
        arrays[name] = _view(data, dtype, shape, offset)
        offset += size + _padding(size)
    if offset != len(data):
        raise FrameError("the arrays do not fill the frame")
    return arrays


def _view(data: Buffer, dtype: np.dtype[Any], shape: list[int], offset: int) -> Array:
    count = prod(shape)
    try:
        if not count:
            return np.empty(shape, dtype=dtype)
        return np.frombuffer(data, dtype=dtype, count=count, offset=offset).reshape(shape)
    except ValueError as error:  # axes beside an empty one that overflow together
        raise FrameError("an array has an impossible shape") from error


def _padding(size: int) -> int:
    """Return the number of bytes up to the next aligned offset."""
    return -size % ALIGNMENT

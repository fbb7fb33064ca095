"""Bodies of the Open Inference Protocol: JSON, then raw tensors; or one raw tensor alone."""

import re
import zlib
from collections.abc import Callable, Iterator, Sequence
from math import prod

import msgspec
import numpy as np

from service.child.reading.checks import SUPPLIED_PREFIX
from service.child.requests.limits import BodyLimits
from service.child.requests.predict_request import PredictRequest
from service.child.requests.tensors import check_shape, read_list
from service.errors import InvalidInput, MalformedRequest, TooLarge, shown
from service.runner.messages.frames import Array, Buffer
from service.runner.messages.open_inference import (
    BF16,
    BINARY_ONLY,
    DATATYPES,
    InferRequest,
    InputTensor,
    TensorMetadata,
    item_bytes,
    parse_infer_request,
    place_of,
)
from service.runner.messages.predict_batches import SentBodies
from service.untouched_memory import first_bytes, untouched_memory


def raw_request(inputs: Sequence[TensorMetadata], n_bytes: int) -> InferRequest:
    """Return the request for a body that is one row of a single input; outputs are raw tensors.

    One size of the row may be free: it follows from the number of bytes.

    Raises
    ------
    InvalidInput
        If the model has several inputs, or several of the sizes are free.
    """
    if len(inputs) != 1:
        names = ", ".join(tensor.name for tensor in inputs)
        raise InvalidInput.at(
            "body", f"a body without JSON is for models of one input; this one has {names}"
        )
    tensor = inputs[0]
    sizes = tensor.shape[1:]
    if sizes.count(-1) > 1:
        raise InvalidInput.at(
            "body", f"the shape {tensor.shape} of {tensor.name} does not follow from its bytes"
        )
    known = prod(size for size in sizes if size > 0) * item_bytes(tensor)
    shape = [1, *(max(n_bytes // known, 1) if size < 0 else size for size in sizes)]
    described = InputTensor(tensor.name, shape, tensor.datatype, {"binary_data_size": n_bytes})
    return InferRequest([described], parameters={"binary_data_output": True})


ENCODINGS = ("identity", "gzip", "deflate")
LENGTH_HEADER = "Inference-Header-Content-Length"
_WINDOW_BITS = {"gzip": 31, "deflate": 15}


def inflate(body: bytes, encoding: str, *, max_bytes: int) -> bytes:
    """Return the body without its ``Content-Encoding``, gzip or deflate, of at most ``max_bytes``.

    Raises
    ------
    TooLarge
        If the result has more than ``max_bytes``.
    MalformedRequest
        If the encoding is invalid or cut off.
    """
    engine = zlib.decompressobj(_WINDOW_BITS[encoding])
    inflated = untouched_memory(max_bytes, is_filled=False)
    size = 0
    try:
        for piece in _inflated_pieces(engine, body):
            if size + len(piece) > max_bytes:
                raise TooLarge.at("body", f"expected at most {max_bytes} bytes once it is inflated")
            inflated[size : size + len(piece)] = piece
            size += len(piece)
    except zlib.error as error:
        raise MalformedRequest.at("body", f"this is no {encoding}: {error}") from error
    if not engine.eof or engine.unused_data:
        raise MalformedRequest.at("body", f"expected one whole {encoding} stream and no more")
    if size <= PIECE_BYTES:
        return inflated[:size]
    return first_bytes(inflated, size)


# Other threads run between pieces.
PIECE_BYTES = 2**18


def _inflated_pieces(engine: "zlib._Decompress", body: bytes) -> Iterator[bytes]:
    """Yield what a body inflates to; bytes behind its end go to ``engine.unused_data``."""
    for start in range(0, len(body), PIECE_BYTES):
        rest = body[start : start + PIECE_BYTES]
        while rest:
            yield engine.decompress(rest, PIECE_BYTES)
            rest = engine.unconsumed_tail


def divide(body: Buffer, header_length: str | None) -> tuple[memoryview, memoryview]:
    """Return the JSON and the raw tensors after it; without the header everything is JSON.

    Raises
    ------
    MalformedRequest
        If the header is not a number of bytes within the body.
    """
    view = memoryview(body)
    if header_length is None:
        return view, view[len(view) :]
    digits = re.fullmatch(r"[0-9]{1,18}", header_length)
    if digits is None or int(header_length) > len(view):
        raise MalformedRequest.at(
            LENGTH_HEADER,
            f"expected a number of bytes from 0 to {len(view)}, which is the length of the body, "
            f"got {shown(header_length)}",
        )
    return view[: int(header_length)], view[int(header_length) :]


KNOWN = (*DATATYPES, BF16)
# JSON numbers are read as float64, which is exact for integers up to here.
EXACT = 2**53


def read_tensors(
    inputs: Sequence[InputTensor], raw: memoryview, *, max_rows: int
) -> dict[str, Array]:
    """Return the arrays by name; ``raw`` has the arrays that are not in the JSON, in order.

    Raises
    ------
    InvalidInput
        If a datatype is unknown, a shape is invalid or does not match the numbers, a number does
        not fit its type, or bytes are missing or left over.
    TooLarge
        If there are more than ``max_rows`` rows.
    """
    arrays, start = {}, 0
    for tensor in inputs:
        place = place_of("inputs", tensor.name)
        _check_kind(tensor, place)
        if any(size < 1 for size in tensor.shape):
            raise InvalidInput.at(f"{place}.shape", f"expected sizes from 1, got {tensor.shape}")
        check_shape(tensor.shape, location=f"{place}.shape", max_rows=max_rows)
        if tensor.is_binary:
            end = start + _byte_count(tensor, len(raw) - start, place)
            arrays[tensor.name] = _from_bytes(raw[start:end], tensor)
            start = end
        else:
            arrays[tensor.name] = _from_json(tensor, f"{place}.data")
    if start != len(raw):
        raise InvalidInput.at("body", f"{len(raw) - start} bytes are left over after the tensors")
    return arrays


def _check_kind(tensor: InputTensor, place: str) -> None:
    if tensor.datatype not in KNOWN:
        raise InvalidInput.at(
            f"{place}.datatype", f"expected one of {', '.join(KNOWN)}, got {shown(tensor.datatype)}"
        )
    if tensor.is_binary == bool(tensor.data):
        raise InvalidInput.at(place, "expected either data or the parameter binary_data_size")
    if tensor.datatype in BINARY_ONLY and not tensor.is_binary:
        raise InvalidInput.at(
            f"{place}.datatype", f"{tensor.datatype} has no JSON; send it as binary data"
        )


def _byte_count(tensor: InputTensor, left: int, place: str) -> int:
    item = 2 if tensor.datatype == BF16 else DATATYPES[tensor.datatype].itemsize
    needed = prod(tensor.shape) * item
    size = (tensor.parameters or {}).get("binary_data_size")
    if type(size) is not int or size != needed:
        raise InvalidInput.at(
            f"{place}.parameters.binary_data_size",
            f"expected {needed}, for {tensor.datatype} of shape {tensor.shape}, got {size!r:.99}",
        )
    if size > left:
        raise InvalidInput.at(place, f"expected {size} bytes after the JSON, {left} are left")
    return size


def _from_bytes(raw: memoryview, tensor: InputTensor) -> Array:
    if tensor.datatype == BF16:
        upper_half = np.frombuffer(raw, "<u2").astype("<u4")
        return (upper_half << 16).view("<f4").reshape(tensor.shape)
    array = np.frombuffer(raw, DATATYPES[tensor.datatype]).reshape(tensor.shape)
    return array if array.flags.aligned else array.copy()


def _from_json(tensor: InputTensor, place: str) -> Array:
    text, n_values = bytes(tensor.data), prod(tensor.shape)
    # Counted before any list is made, however they are nested.
    found = text.count(b",") + 1
    if found != n_values:
        raise InvalidInput.at(
            place, f"expected {n_values} values, for shape {tensor.shape}, got {found}"
        )
    if tensor.datatype == "BOOL":
        values = _booleans(text, place)
    else:
        values = read_list(text, location=place, max_rows=n_values)
    if list(values.shape) not in (tensor.shape, [n_values]):
        raise InvalidInput.at(
            place,
            f"expected lists of shape {tensor.shape}, or one flat list, got {list(values.shape)}",
        )
    return _as_datatype(values, tensor.datatype, place).reshape(tensor.shape)


def _booleans(text: bytes, place: str) -> Array:
    try:
        values: Array = np.array(msgspec.json.decode(text))
    except (msgspec.DecodeError, RecursionError, ValueError) as error:
        raise InvalidInput.at(place, "expected lists of true and false, all alike") from error
    if values.dtype != np.bool_:
        raise InvalidInput.at(place, "expected true and false alone")
    return values


def _as_datatype(values: Array, datatype: str, place: str) -> Array:
    dtype = DATATYPES[datatype]
    if dtype.kind in "iu":
        limits = np.iinfo(dtype)
        least, most = max(int(limits.min), -EXACT), min(int(limits.max), EXACT)
        wrong = (values != np.floor(values)) | (values < least) | (values > most)
        if wrong.any():
            index = np.unravel_index(int(np.argmax(wrong)), wrong.shape)
            more = "; send larger ones as binary data" if most == EXACT else ""
            raise InvalidInput.at(
                place + "".join(f"[{i}]" for i in index),
                f"expected a whole number from {least} to {most}{more}",
            )
    with np.errstate(over="ignore"):  # infinities are refused later
        return values.astype(dtype, copy=False)


def read_infer(
    sent: SentBodies,
    body: Buffer,
    *,
    limits: BodyLimits,
    inputs: Callable[[], Sequence[TensorMetadata]],
) -> tuple[InferRequest, PredictRequest]:
    """Return the request and its arrays; ``inputs`` are the model's, for bodies without JSON.

    Raises
    ------
    MalformedRequest, InvalidInput, TooLarge
        If the body breaks a rule.
    """
    text, raw = divide(body, sent.header_length)
    if not raw:
        limits.check_json(bytes(body))
    if sent.header_length is not None and not text:
        request = raw_request(inputs(), len(raw))
    else:
        request = parse_infer_request(text)
        _ = request.timeout_ns  # refused if it is none; the parent only looks for it
    arrays = read_tensors(request.inputs, raw, max_rows=limits.max_rows)
    supplied = {name for name in arrays if name.startswith(SUPPLIED_PREFIX)}
    asked = PredictRequest(
        {name: array for name, array in arrays.items() if name not in supplied},
        {name.removeprefix(SUPPLIED_PREFIX): arrays[name] for name in supplied},
    )
    return request, asked

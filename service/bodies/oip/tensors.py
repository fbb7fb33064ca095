"""Input tensors out of a request: from JSON, or from the bytes behind it."""

from collections.abc import Sequence
from math import prod

import msgspec
import numpy as np

from service.bodies.oip.datatypes import BF16, BINARY_ONLY, DATATYPES
from service.bodies.oip.request import InputTensor, place_of
from service.bodies.request import Array
from service.bodies.tensors import check_shape, read_list
from service.errors import InvalidInput, shown

KNOWN = (*DATATYPES, BF16)
# JSON numbers are read as float64, which holds every integer up to here.
EXACT = 2**53


def read_tensors(
    inputs: Sequence[InputTensor], raw: memoryview, *, max_rows: int
) -> dict[str, Array]:
    """Return the arrays by name; ``raw`` holds, in their order, those that are not in the JSON.

    Raises
    ------
    InvalidInput
        If a type is unknown, a shape is none, the numbers are more or fewer than it says, or one
        does not fit its type; or if bytes are missing or left over.
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
    return np.frombuffer(raw, DATATYPES[tensor.datatype]).reshape(tensor.shape)


def _from_json(tensor: InputTensor, place: str) -> Array:
    text, n_values = bytes(tensor.data), prod(tensor.shape)
    # However the lists are nested; and it is known before any of them is made.
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
    with np.errstate(over="ignore"):  # what float32 cannot hold is refused as not finite
        return values.astype(dtype, copy=False)

"""External weights in files beside the model.

A reference must be a plain file name among the companions of the upload. ONNX Runtime itself would
read any file of the working directory.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from onnx import ModelProto, TensorProto, helper

from service.errors import InvalidOnnxModel, ModelRule
from service.graph.description import quote, quote_all
from service.graph.proto import nested_tensors

Companion: TypeAlias = bytes | bytearray | memoryview

# ONNX Runtime infers shapes before it takes weights from memory, so it refuses an external shape.
# In branches, loops and functions it does not take weights from memory at all.
SMALL_BYTES = 1024
MAX_EMBEDDED_BYTES = 2**30
MAX_DIGITS = 18

VALUES_PER_BYTE: dict[int, int] = {
    TensorProto.UINT4: 2,
    TensorProto.INT4: 2,
    TensorProto.FLOAT4E2M1: 2,
    TensorProto.UINT2: 4,
    TensorProto.INT2: 4,
}


@dataclass(frozen=True)
class _Reference:
    """The location of a tensor's values; the name and the numbers are checked."""

    tensor: str
    location: str
    offset: int
    n_bytes: int


def external_files(model: ModelProto) -> tuple[str, ...]:
    """Return the sorted names of the files with weights.

    Raises
    ------
    InvalidOnnxModel
        If a reference is not a plain file name, or does not match its tensor.
    """
    return tuple(sorted({_reference(tensor).location for tensor, _ in _external_tensors(model)}))


def attach_external_data(model: ModelProto, companions: Mapping[str, Companion]) -> tuple[str, ...]:
    """Check every reference, and load, in place, weights that ONNX Runtime cannot take from memory.

    Parameters
    ----------
    model
        Edited in place: small tensors, and tensors outside the main graph's initializers, then hold
        their values.
    companions
        Contents by plain file name; ``memoryview(mmap)`` is possible.

    Returns
    -------
    tuple of str
        The companions that the session still needs, for
        ``SessionOptions.add_external_initializers_from_files_in_memory``.

    Raises
    ------
    InvalidOnnxModel
        If a companion is missing, a tensor exceeds its file, or too much would be loaded.
    """
    in_memory: set[str] = set()
    embedded: list[tuple[TensorProto, memoryview]] = []
    for tensor, nested in _external_tensors(model):
        reference = _reference(tensor)
        values = _read(reference, companions)
        if nested or len(values) <= SMALL_BYTES:
            embedded.append((tensor, values))
        else:
            in_memory.add(reference.location)
    # Many tensors may refer to the same bytes, so a small file could fill the memory.
    if sum(len(values) for _, values in embedded) > MAX_EMBEDDED_BYTES:
        raise InvalidOnnxModel.because(
            ModelRule.EXTERNAL_TOO_LARGE,
            f"external weights outside the main graph exceed {MAX_EMBEDDED_BYTES} bytes",
        )
    for tensor, values in embedded:
        tensor.raw_data = bytes(values)
        tensor.data_location = TensorProto.DEFAULT
        del tensor.external_data[:]
    return tuple(sorted(in_memory))


def _external_tensors(model: ModelProto) -> Iterator[tuple[TensorProto, bool]]:
    """Yield each external tensor, and whether it is outside the main graph's initializers."""
    for tensor in model.graph.initializer:
        if tensor.data_location == TensorProto.EXTERNAL:
            yield tensor, False
    for tensor in nested_tensors(model):
        if tensor.data_location == TensorProto.EXTERNAL:
            yield tensor, True


def _reference(tensor: TensorProto) -> _Reference:
    entries = {entry.key: entry.value for entry in tensor.external_data}
    if len(entries) < len(tensor.external_data):
        raise _invalid(tensor, "its reference has an entry twice")
    location = entries.get("location", "")
    # A colon means a drive or a stream on Windows; the others leave the folder.
    if location in ("", ".", "..") or any(character in location for character in "/\\:\0"):
        # The message omits the path, which would look like one of this machine.
        raise _invalid(
            tensor,
            "its external data location is a path or empty; only the plain name of a file sent as "
            "'model_data' is allowed; save the model with external data beside it",
            rule=ModelRule.EXTERNAL_PATH,
        )
    n_bytes = _size(tensor)
    if _number(tensor, entries, "length", n_bytes) != n_bytes:
        raise _invalid(
            tensor,
            f"shape and type take {n_bytes} bytes, the reference to {quote(location)} says "
            f"{quote(entries['length'])}",
        )
    return _Reference(tensor.name, location, _number(tensor, entries, "offset", 0), n_bytes)


def _size(tensor: TensorProto) -> int:
    try:
        item = int(helper.tensor_dtype_to_np_dtype(tensor.data_type).itemsize)
    except KeyError:
        item = 0
    if item == 0 or tensor.data_type == TensorProto.STRING or min(tensor.dims, default=0) < 0:
        raise _invalid(tensor, "its type or shape cannot be kept in a file")
    n_values = math.prod(int(size) for size in tensor.dims)
    return -(-n_values * item // VALUES_PER_BYTE.get(tensor.data_type, 1))


def _number(tensor: TensorProto, entries: Mapping[str, str], key: str, default: int) -> int:
    text = entries.get(key, "")
    if not text:
        return default
    if not (text.isascii() and text.isdigit() and len(text) <= MAX_DIGITS):
        raise _invalid(tensor, f"{key} {quote(text)} is not a number of bytes")
    return int(text)


def _read(reference: _Reference, companions: Mapping[str, Companion]) -> memoryview:
    if reference.location not in companions:
        sent = quote_all(sorted(companions)) or "none"
        raise InvalidOnnxModel.because(
            ModelRule.EXTERNAL_MISSING,
            f"tensor {quote(reference.tensor)} needs the file {quote(reference.location)}: send "
            f"it as 'model_data', on the command line --model-data FILE (sent: {sent})",
        )
    contents = memoryview(companions[reference.location]).cast("B")
    end = reference.offset + reference.n_bytes
    if end > len(contents):
        raise InvalidOnnxModel.because(
            ModelRule.EXTERNAL_BOUNDS,
            f"tensor {quote(reference.tensor)} ends at byte {end} of {quote(reference.location)}, "
            f"which has {len(contents)}; send the file that was saved with this model",
        )
    return contents[reference.offset : end]


def _invalid(
    tensor: TensorProto, message: str, *, rule: ModelRule = ModelRule.EXTERNAL_REFERENCE
) -> InvalidOnnxModel:
    return InvalidOnnxModel.because(rule, f"tensor {quote(tensor.name)}: {message}")

"""Requests of the Open Inference Protocol: types, tensors and requested outputs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, TypeAlias

import msgspec
import numpy as np
from msgspec import Meta

from service.errors import InvalidInput, MalformedRequest, shown

DATATYPES: dict[str, np.dtype[Any]] = {
    "BOOL": np.dtype(np.bool_),
    **{f"UINT{8 * size}": np.dtype(f"<u{size}") for size in (1, 2, 4, 8)},
    **{f"INT{8 * size}": np.dtype(f"<i{size}") for size in (1, 2, 4, 8)},
    **{f"FP{8 * size}": np.dtype(f"<f{size}") for size in (2, 4, 8)},
}
# The upper half of a float32; numpy has no such type, so it is read as float32.
BF16 = "BF16"
# A request that names more outputs, or has a longer id, is refused.
MOST_OUTPUTS, MOST_NAME_BYTES, LONGEST_ID = 200, 2**14, 1000
OutputName: TypeAlias = Annotated[str, Meta(max_length=MOST_NAME_BYTES)]
RequestId: TypeAlias = Annotated[str, Meta(max_length=LONGEST_ID)]
# The protocol has no JSON for them.
BINARY_ONLY = ("FP16", BF16)

_NAMES = {dtype: name for name, dtype in DATATYPES.items()}


def datatype_of(dtype: np.dtype[Any]) -> str:
    """Return the protocol's name of a type of numbers."""
    return _NAMES[dtype]


@dataclass(frozen=True)
class TensorMetadata:
    """One tensor; -1 means any size, and is always the size of the batch axis."""

    name: str
    datatype: str
    shape: list[int]


def item_bytes(tensor: TensorMetadata) -> int:
    """Return the bytes of one of its numbers."""
    return DATATYPES[tensor.datatype].itemsize


Parameters: TypeAlias = dict[str, str | int | float | bool]

_EXTENSIONS = {
    "classification": "the classification extension",
    "shared_memory_region": "tensors in shared memory",
}


class InputTensor(msgspec.Struct):
    """One input: its numbers are in ``data``, or follow the JSON."""

    name: str
    shape: list[int]
    datatype: str
    parameters: Parameters | None = None
    data: msgspec.Raw = msgspec.Raw()

    @property
    def is_binary(self) -> bool:
        """Whether its numbers follow the JSON."""
        return "binary_data_size" in (self.parameters or {})


class RequestedOutput(msgspec.Struct):
    """One requested output."""

    name: str
    parameters: Parameters | None = None


class InferRequest(msgspec.Struct):
    """One request. Unknown fields are ignored, as other servers do."""

    inputs: list[InputTensor]
    id: RequestId | None = None
    parameters: Parameters | None = None
    outputs: Annotated[list[RequestedOutput], Meta(max_length=MOST_OUTPUTS)] | None = None

    @property
    def timeout_ns(self) -> int:
        """The timeout of the request; 0 means the service's own limit."""
        timeout = (self.parameters or {}).get("timeout", 0)
        if type(timeout) is not int or timeout < 0:
            raise InvalidInput.at(
                "parameters.timeout",
                "expected microseconds, a whole number; 0 is the service's own limit",
            )
        return timeout * 1000


_decoder = msgspec.json.Decoder(InferRequest)


def parse_infer_request(text: bytes | memoryview) -> InferRequest:
    """Read the request.

    Raises
    ------
    MalformedRequest
        If it is not JSON.
    InvalidInput
        If a field is missing or of the wrong type, a name stands twice, or an extension is asked
        for that this service does not have.
    """
    try:
        request = _decoder.decode(text)
    except msgspec.ValidationError as error:
        # It quotes names of fields as they were sent.
        raise InvalidInput.at("body", shown(str(error))[1:-1]) from error
    except RecursionError as error:
        raise MalformedRequest.at("body", "the lists are nested too deeply") from error
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise MalformedRequest.at("body", f"expected a JSON object: {error}") from error
    if not request.inputs:
        raise InvalidInput.at("inputs", "expected at least one tensor")
    _check_tensors("inputs", request.inputs)
    _check_tensors("outputs", request.outputs or [])
    return request


def flag(parameters: Parameters | None, name: str, place: str, *, default: bool) -> bool:
    """Return a parameter that is true or false.

    Raises
    ------
    InvalidInput
        If it is neither.
    """
    found = (parameters or {}).get(name, default)
    if not isinstance(found, bool):
        raise InvalidInput.at(f"{place}.{name}", "expected true or false")
    return found


def place_of(part: str, name: str) -> str:
    """Return where a tensor is, for messages."""
    return f"{part}.{shown(name)[1:-1]}"


def _check_tensors(part: str, tensors: Sequence[InputTensor | RequestedOutput]) -> None:
    seen = set()
    for tensor in tensors:
        place = place_of(part, tensor.name)
        if tensor.name in seen:
            raise InvalidInput.at(place, "this tensor stands twice in the request")
        seen.add(tensor.name)
        _refuse_extensions(tensor.parameters or {}, place)


def _refuse_extensions(parameters: Mapping[str, object], place: str) -> None:
    for name, extension in _EXTENSIONS.items():
        if name in parameters:
            raise InvalidInput.at(
                f"{place}.parameters.{name}", f"{extension} is not among those served here"
            )


class RequestedOutputs(msgspec.Struct):
    """The outputs of a response and their form.

    Attributes
    ----------
    id
        The id of the request, which the response repeats.
    all_binary
        Whether outputs are raw tensors if none is named.
    outputs
        Names in the requested order, and whether each is a raw tensor; None for all.
    """

    id: RequestId | None = None
    all_binary: bool = False
    outputs: Annotated[list[tuple[OutputName, bool]], Meta(max_length=MOST_OUTPUTS)] | None = None

    def __post_init__(self) -> None:
        names = dict(self.outputs or ())
        if len(names) < len(self.outputs or ()) or sum(map(len, names)) > MOST_NAME_BYTES:
            raise ValueError("an output stands twice, or the names are too long")


def requested_outputs(request: InferRequest) -> RequestedOutputs:
    """Return the outputs that a request names; whether they exist is not known here.

    Raises
    ------
    InvalidInput
        If the names are too long, or a parameter that is true or false is neither.
    """
    if sum(len(output.name.encode()) for output in request.outputs or ()) > MOST_NAME_BYTES:
        message = f"expected names of at most {MOST_NAME_BYTES} bytes in all"
        raise InvalidInput.at("outputs", message)
    all_binary = flag(request.parameters, "binary_data_output", "parameters", default=False)
    outputs = []
    for output in request.outputs or ():
        place = f"{place_of('outputs', output.name)}.parameters"
        is_binary = flag(output.parameters, "binary_data", place, default=all_binary)
        outputs.append((output.name, is_binary))
    return RequestedOutputs(request.id, all_binary, outputs or None)

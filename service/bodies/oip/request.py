"""The JSON of an inference request; the numbers inside stay unread."""

from collections.abc import Mapping, Sequence
from typing import TypeAlias

import msgspec

from service.errors import InvalidInput, MalformedRequest, shown

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
    """One output that is asked for."""

    name: str
    parameters: Parameters | None = None


class InferRequest(msgspec.Struct):
    """One request. What the protocol does not know is passed over, as other servers do."""

    inputs: list[InputTensor]
    id: str | None = None
    parameters: Parameters | None = None
    outputs: list[RequestedOutput] | None = None

    @property
    def timeout_ns(self) -> int:
        """How long the request may take; 0 is as long as any may."""
        timeout = (self.parameters or {}).get("timeout", 0)
        if type(timeout) is not int or timeout < 0:
            raise InvalidInput.at(
                "parameters.timeout",
                "expected microseconds, a whole number; 0 is the service's own limit",
            )
        return timeout * 1000

    @property
    def all_binary(self) -> bool:
        """Whether outputs are raw tensors where nothing else is said of them."""
        return flag(self.parameters, "binary_data_output", "parameters", default=False)


_decoder = msgspec.json.Decoder(InferRequest)


def parse_infer_request(text: bytes | memoryview) -> InferRequest:
    """Read the request.

    Raises
    ------
    MalformedRequest
        If it is no JSON.
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

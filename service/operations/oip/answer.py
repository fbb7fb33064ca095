"""The answer to an inference request: JSON, and raw tensors behind it where they are asked for."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from service.bodies.oip.datatypes import datatype_of
from service.bodies.oip.request import InferRequest, flag, place_of
from service.bodies.request import Array
from service.errors import InvalidInput
from service.storage.references import CalibrationRef


@dataclass(frozen=True)
class InferAnswer:
    """The body, and how much of it is JSON; None where all of it is."""

    body: bytes
    header_length: int | None


def encode_answer(
    ref: CalibrationRef, request: InferRequest, arrays: Mapping[str, Array]
) -> InferAnswer:
    """Return the outputs that are asked for, in that order; all where none is named.

    Raises
    ------
    InvalidInput
        If an output is asked for that there is not.
    """
    outputs: list[dict[str, Any]] = []
    raw: list[bytes] = []
    for name, is_binary in _wanted(request, arrays):
        array = arrays[name]
        output: dict[str, Any] = {
            "name": name,
            "datatype": datatype_of(array.dtype),
            "shape": list(array.shape),
        }
        if is_binary:
            raw.append(array.astype(array.dtype.newbyteorder("<"), copy=False).tobytes())
            output["parameters"] = {"binary_data_size": len(raw[-1])}
        else:
            output["data"] = array.ravel().tolist()
        outputs.append(output)
    answer: dict[str, Any] = {"model_name": ref.name, "model_version": str(ref.version)}
    if request.id:
        answer["id"] = request.id
    head = msgspec.json.encode(answer | {"outputs": outputs})
    return InferAnswer(b"".join([head, *raw]), len(head) if raw else None)


def _wanted(request: InferRequest, arrays: Mapping[str, Array]) -> Iterator[tuple[str, bool]]:
    """Yield the names of outputs, and whether each is to be a raw tensor."""
    if not request.outputs:
        yield from ((name, request.all_binary) for name in arrays)
        return
    for output in request.outputs:
        place = place_of("outputs", output.name)
        if output.name not in arrays:
            known = ", ".join(arrays)
            raise InvalidInput.at(place, f"there is no such output; there are {known}")
        yield (
            output.name,
            flag(
                output.parameters, "binary_data", f"{place}.parameters", default=request.all_binary
            ),
        )

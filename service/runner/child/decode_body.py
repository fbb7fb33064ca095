"""From the body of one request to the arrays of a model's inputs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from service.bodies import BODIES, JSON
from service.bodies.limits import BodyLimits
from service.bodies.oip.datatypes import datatype_of
from service.bodies.oip.infer_body import InferBody, read_infer
from service.bodies.oip.tensor_metadata import TensorMetadata
from service.bodies.oip.wanted import Wanted, wanted_of
from service.bodies.request import PredictRequest, model_inputs
from service.errors import InvalidInput
from service.graph.description import TensorSpec
from service.runner.batch_messages import Sent, SuppliedColumn
from service.runner.child.input_arrays import fit_inputs
from service.runner.frames import DTYPES, Array, Buffer, code_of

OIP = "oip"
LOCATION = "inputs"


@dataclass(frozen=True, eq=False)
class Decoded:
    """The rows of a request as the model takes them, and what came beside them."""

    rows: Mapping[str, Array]
    wanted: Wanted | None
    supplied: Mapping[str, SuppliedColumn]


def decode_body(
    sent: Sent, body: Buffer, specs: Sequence[TensorSpec], *, limits: BodyLimits
) -> Decoded:
    """Read a body and hold it against the model's inputs.

    Raises
    ------
    MalformedRequest, InvalidInput, TooLarge, UnsupportedFormat
        If it breaks a rule.
    """
    request, wanted = _read(sent, bytes(body), specs, limits)
    inputs = model_inputs(request, [spec.name for spec in specs], max_rows=limits.max_rows)
    return Decoded(
        rows=fit_inputs(inputs, specs, location=LOCATION, start=0),
        wanted=wanted,
        supplied={name: _column(name, array) for name, array in request.supplied.items()},
    )


def _read(
    sent: Sent, body: bytes, specs: Sequence[TensorSpec], limits: BodyLimits
) -> tuple[PredictRequest, Wanted | None]:
    if sent.media_type == OIP:
        whole = InferBody(sent.reference, body, sent.encoding, sent.header_length)
        asked, request = read_infer(whole, limits=limits, inputs=lambda: _metadata(specs))
        return request, wanted_of(asked)
    parameter = None if sent.media_type == JSON else sent.reference
    request = BODIES[sent.media_type](body, calibration=parameter, limits=limits)
    if request.calibration != sent.reference:
        # Who reads the name first and who reads the body must not take it for two.
        raise InvalidInput.at("calibration", "expected one name, at the top of the body")
    return request, None


def _metadata(specs: Sequence[TensorSpec]) -> list[TensorMetadata]:
    """Return what the protocol calls the model's inputs; of no shape is known but the rows."""
    found = []
    for spec in specs:
        sizes = (spec.shape or (None,))[1:]
        shape = [-1, *(-1 if size is None else size for size in sizes)]
        found.append(TensorMetadata(spec.name, datatype_of(DTYPES[spec.dtype]), shape))
    return found


def _column(name: str, array: Array) -> SuppliedColumn:
    code = code_of(array.dtype)
    if code is None:
        raise InvalidInput.at(f"supplied.{name}", f"expected numbers, got {array.dtype}")
    data = array.astype(DTYPES[code], copy=False).tobytes()
    return SuppliedColumn(dtype=code, shape=list(array.shape), data=data)

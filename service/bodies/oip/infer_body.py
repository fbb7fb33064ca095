"""A whole inference request: inflated, divided, its tensors read."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from service.bodies.limits import BodyLimits
from service.bodies.oip.body import divide, inflate
from service.bodies.oip.raw import raw_request
from service.bodies.oip.request import InferRequest, parse_infer_request
from service.bodies.oip.tensor_metadata import TensorMetadata
from service.bodies.oip.tensors import read_tensors
from service.bodies.request import PredictRequest
from service.datasets.supplied import SUPPLIED_PREFIX


@dataclass(frozen=True)
class InferBody:
    """A body as it arrived, with what its path and its headers say.

    ``header_length`` is how much of it, once inflated, is JSON; None where all of it is.
    """

    reference: str
    body: bytes
    encoding: str
    header_length: str | None


def read_infer(
    sent: InferBody, *, limits: BodyLimits, inputs: Callable[[], Sequence[TensorMetadata]]
) -> tuple[InferRequest, PredictRequest]:
    """Return the request and its arrays; ``inputs`` are the model's, for bodies without JSON.

    Raises
    ------
    MalformedRequest, InvalidInput, TooLarge, UnsupportedFormat
        If the body breaks a rule.
    """
    body = inflate(sent.body, sent.encoding, max_bytes=limits.max_bytes)
    text, raw = divide(body, sent.header_length)
    if not raw:
        limits.check_json(body)
    if sent.header_length is not None and not text:
        request = raw_request(inputs(), len(raw))
    else:
        request = parse_infer_request(text)
    arrays = read_tensors(request.inputs, raw, max_rows=limits.max_rows)
    supplied = {name for name in arrays if name.startswith(SUPPLIED_PREFIX)}
    asked = PredictRequest(
        sent.reference,
        {name: array for name, array in arrays.items() if name not in supplied},
        {name.removeprefix(SUPPLIED_PREFIX): arrays[name] for name in supplied},
    )
    return request, asked

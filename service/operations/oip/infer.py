"""Answer an inference request of the Open Inference Protocol."""

import time
import uuid
from contextlib import suppress
from dataclasses import dataclass

from service.datasets.supplied import SUPPLIED_PREFIX
from service.errors import DeadlineExceeded, ServiceError
from service.operations.oip.answer import InferAnswer, encode_answer
from service.operations.oip.body import divide, inflate
from service.operations.oip.metadata import input_tensors
from service.operations.oip.raw import raw_request
from service.operations.oip.repository import ready_model
from service.operations.oip.request import InferRequest, parse_infer_request
from service.operations.oip.statistics import Spent, Statistics
from service.operations.oip.tensors import read_tensors
from service.operations.predict import predict
from service.operations.predict_request import PredictRequest
from service.operations.prediction_arrays import prediction_arrays
from service.operations.workspace import Workspace


@dataclass(frozen=True)
class InferCall:
    """A request as it arrived, ``arrived_ns`` being the monotonic clock's.

    ``header_length`` is how much of the body, once inflated, is JSON; None where all of it is.
    """

    reference: str
    body: bytes
    encoding: str
    header_length: str | None
    arrived_ns: int


def infer(
    workspace: Workspace, tenant_id: uuid.UUID, statistics: Statistics, call: InferCall
) -> InferAnswer:
    """Answer a request, and count it.

    Raises
    ------
    NotFound, Conflict
        If there is no such calibration, or it has not succeeded.
    InvalidInput
        If the body breaks a rule, or does not suit the model.
    DeadlineExceeded
        If it has waited for longer than its ``timeout``, or the model took too long.
    InferenceFailed
        If the model did not answer.
    """
    try:
        return _infer(workspace, tenant_id, statistics, call)
    except ServiceError:
        with suppress(ServiceError):  # what there is no such model of is counted nowhere
            ref = ready_model(workspace, tenant_id, call.reference)
            statistics.failed(ref, ns=time.monotonic_ns() - call.arrived_ns)
        raise


def _infer(
    workspace: Workspace, tenant_id: uuid.UUID, statistics: Statistics, call: InferCall
) -> InferAnswer:
    started = time.monotonic_ns()
    request, asked = _read(workspace, tenant_id, call)
    read = time.monotonic_ns()
    if 0 < request.timeout_ns < read - call.arrived_ns:
        raise DeadlineExceeded("The request has waited for longer than its `timeout`.")
    batch = predict(workspace, tenant_id, asked)
    answered = time.monotonic_ns()
    ref = batch.calibration.ref
    answer = encode_answer(ref, request, prediction_arrays(batch))
    spent = Spent(
        queue=started - call.arrived_ns,
        compute_input=read - started,
        compute_infer=answered - read,
        compute_output=time.monotonic_ns() - answered,
    )
    statistics.succeeded(ref, rows=len(batch.classes), spent=spent)
    return answer


def _read(
    workspace: Workspace, tenant_id: uuid.UUID, call: InferCall
) -> tuple[InferRequest, PredictRequest]:
    limits = workspace.limits
    body = inflate(call.body, call.encoding, max_bytes=limits.max_predict_bytes)
    text, raw = divide(body, call.header_length)
    if call.header_length is not None and not text:
        inputs = input_tensors(workspace, tenant_id, call.reference)
        request = raw_request(inputs, len(raw))
    else:
        request = parse_infer_request(text)
    arrays = read_tensors(request.inputs, raw, max_rows=limits.max_predict_rows)
    supplied = {name for name in arrays if name.startswith(SUPPLIED_PREFIX)}
    asked = PredictRequest(
        call.reference,
        {name: array for name, array in arrays.items() if name not in supplied},
        {name.removeprefix(SUPPLIED_PREFIX): arrays[name] for name in supplied},
    )
    return request, asked

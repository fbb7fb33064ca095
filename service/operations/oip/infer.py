"""Answer an inference request of the Open Inference Protocol."""

import time
import uuid
from contextlib import suppress
from dataclasses import dataclass

from service.bodies.oip.infer_body import InferBody, read_infer
from service.bodies.oip.wanted import wanted_of
from service.errors import DeadlineExceeded, ServiceError
from service.operations.answered_rows import AnsweredRows
from service.operations.oip.answer import InferAnswer
from service.operations.oip.metadata import input_tensors
from service.operations.oip.repository import ready_model
from service.operations.oip.statistics import Spent, Statistics
from service.operations.predict import predict
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
    request, asked = read_infer(
        InferBody(call.reference, call.body, call.encoding, call.header_length),
        limits=workspace.limits.bodies,
        inputs=lambda: input_tensors(workspace, tenant_id, call.reference),
    )
    wanted = wanted_of(request)
    read = time.monotonic_ns()
    if 0 < request.timeout_ns < read - call.arrived_ns:
        raise DeadlineExceeded("The request has waited for longer than its `timeout`.")
    rows = AnsweredRows(predict(workspace, tenant_id, asked))
    answered = time.monotonic_ns()
    answer = rows.oip(0, rows.n_rows, wanted)
    spent = Spent(
        queue=started - call.arrived_ns,
        compute_input=read - started,
        compute_infer=answered - read,
        compute_output=time.monotonic_ns() - answered,
    )
    statistics.succeeded(rows.ref, rows=rows.n_rows, spent=spent)
    return answer

"""The prediction service: from a request to a model's queue and back, without blocking."""

import asyncio
import re
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import KW_ONLY, dataclass
from functools import partial
from typing import Protocol, TypeVar
from uuid import UUID

import structlog

from service.child.requests.json_body import named_calibration
from service.child.requests.media_types import ROWS_OF_SETS, SETS
from service.child.requests.open_inference import divide, inflate
from service.errors import (
    DeadlineExceeded,
    ServiceError,
)
from service.http.worker_threads import Lane
from service.predictions.answer_writer import AnswerWriter
from service.predictions.name_cache import NameCache
from service.predictions.prediction_request import PredictionRequest, estimate_rows, learn_rows
from service.predictions.served_calibration import ServedCalibration
from service.predictions.set_bodies import read_set_rows
from service.runner.messages.open_inference import parse_infer_request
from service.runner.predict_requests import Answer, body_kind
from service.runner.served_models import ServedModels
from service.workspace import Workspace

OIP = "oip"
IDENTITY = "identity"
MOST_DIGITS = 18
TIMEOUT = b'"timeout"'
_TIMEOUT_NUMBER = re.compile(rb'"timeout"\s{0,100}:\s{0,100}(\d{1,18})\s{0,100}[,}]')
MICROSECONDS = 10**6
# Longer JSON would hold up other requests.
MOST_PARSED_BYTES = 2**16
# JSON may write the name of the parameter with escapes.
ESCAPE = b"\\"
NANOSECONDS = 1e9

log = structlog.get_logger(__name__)


Result = TypeVar("Result")


class InThread(Protocol):
    """Runs a tenant's call in a limited number of threads."""

    def __call__(
        self, tenant_id: UUID, call: Callable[[], Result], /
    ) -> Coroutine[object, object, Result]:
        """Return the result of the call."""


@dataclass(eq=False, repr=False)
class PredictionService:
    """Puts requests into the queues of models and has their answers written.

    Sets are read in a child process first; ``in_thread`` runs the calls that wait for it, and
    inflates bodies. ``answers`` writes large responses.
    """

    workspace: Workspace
    models: ServedModels
    _: KW_ONLY
    in_thread: InThread
    answers: Lane

    def __post_init__(self) -> None:
        self._names = NameCache(self.workspace)
        metrics = self.workspace.metrics.answers
        self._writer = AnswerWriter(metrics, lane=self.answers, fail=self.failed)
        self._loop = asyncio.get_running_loop()

    def begin(self, request: PredictionRequest) -> None:
        """Answer a request, perhaps before this returns."""
        try:
            if request.options.encoding != IDENTITY:
                self._later(request, self._inflate(request))
            else:
                self._begin_plain(request)
        except ServiceError as error:
            self.failed(request, error)

    def answered(self, answers: Sequence[Answer]) -> None:
        """Take the answers of a model's run."""
        # One is enough: most requests of a run are alike.
        answer = answers[0]
        request: PredictionRequest = answer.request
        if request.served is not None and request.kind.media_type not in ROWS_OF_SETS:
            learn_rows(
                request.served.model,
                request.options.media_type,
                len(request.body),
                answer.stop - answer.start,
            )
        for found in answers:
            request = found.request
            if request.rows is not None:
                request.rows.adjust(
                    taken=request.n_rows, used=found.stop - found.start, window=request.rows_window
                )
        self._writer.write(answers)

    def failed(self, request: PredictionRequest, error: Exception) -> None:
        """Fail a request."""
        request.fail(error)

    async def close(self) -> None:
        """End the models' processes; waiting requests fail."""
        await self.models.close()
        await self._names.close()
        await self._writer.close()

    def _begin_plain(self, request: PredictionRequest) -> None:
        options = request.options
        reference = options.reference
        if reference is None:
            reference = named_calibration(request.body)
        if options.media_type == OIP:
            _apply_timeout_parameter(request)
        served = self._names.get(request.tenant_id, reference)
        if served is None:
            self._later(request, self._find(request, reference))
        else:
            self._submit(request, reference, served)

    def _later(self, request: PredictionRequest, work: Coroutine[object, object, None]) -> None:
        request.task = self._loop.create_task(self._run_until_deadline(request, work))

    async def _run_until_deadline(
        self, request: PredictionRequest, work: Coroutine[object, object, None]
    ) -> None:
        """Await work for a request; fail the request if the work fails or the deadline passes."""
        due = self._loop.call_at(request.arrived + request.timeout, self._overdue, request)
        try:
            await work
        except ServiceError as error:
            self.failed(request, error)
        except Exception as error:
            # Unexpected error: still answer every waiting request.
            log.exception("unexpected_error")
            self.failed(request, error)
        finally:
            due.cancel()

    def _overdue(self, request: PredictionRequest) -> None:
        self.failed(request, DeadlineExceeded("The request waited for longer than its timeout."))
        request.drop()

    async def _inflate(self, request: PredictionRequest) -> None:
        limit = self.workspace.limits.bodies.max_bytes
        request.body = await self.in_thread(
            request.tenant_id,
            partial(inflate, request.body, request.options.encoding, max_bytes=limit),
        )
        self._begin_plain(request)

    async def _find(self, request: PredictionRequest, reference: str) -> None:
        served = await self._names.find(request.tenant_id, reference)
        if not request.is_settled:
            self._submit(request, reference, served)

    def _submit(
        self, request: PredictionRequest, reference: str, served: ServedCalibration
    ) -> None:
        options = request.options
        request.served = served
        if options.media_type in SETS:
            self._later(request, self._read_set(request, reference, served))
            return
        request.kind = body_kind(options.media_type, reference, options.header_length)
        request.n_rows = estimate_rows(served.model, options.media_type, len(request.body))
        self._queue(request, served)

    async def _read_set(
        self, request: PredictionRequest, reference: str, served: ServedCalibration
    ) -> None:
        """Have a child process read the rows of a set and queue them."""
        if request.rows is not None:
            request.rows.check_available()
        if request.set_content is None:
            request.set_content = request.body
        left = request.timeout - (self._loop.time() - request.arrived)
        read = partial(read_set_rows, self.workspace, served, request.set_content, seconds=left)
        found = await self.in_thread(request.tenant_id, read)
        request.body, request.n_rows = found.shard, found.n_rows
        if not request.is_settled:
            request.kind = body_kind(found.media_type, reference)
            self._queue(request, served)

    def _queue(self, request: PredictionRequest, served: ServedCalibration) -> None:
        if request.rows is not None:
            request.rows_window = request.rows.take(request.n_rows)
        now = self._loop.time()
        timeout = request.timeout - (now - request.arrived)
        request.batcher = self.models.submit(
            served.model.to_serve, request, timeout=timeout, now=now
        )


def _apply_timeout_parameter(request: PredictionRequest) -> None:
    """Apply the protocol's timeout parameter; only small bodies are parsed for it here."""
    body, length = request.body, request.options.header_length
    end = len(body)
    if length is not None:
        if not (length.isdecimal() and length.isascii() and len(length) <= MOST_DIGITS):
            divide(body, length)  # raises
        end = int(length)
    if end > MOST_PARSED_BYTES:
        timeout = _found_timeout(body, end)
    elif body.find(TIMEOUT, 0, end) < 0 and body.find(ESCAPE, 0, end) < 0:
        return
    else:
        text, _ = divide(body, length)
        timeout = parse_infer_request(text).timeout_ns / NANOSECONDS
    if timeout:
        request.timeout = min(request.timeout, timeout)


def _found_timeout(body: bytes, end: int) -> float:
    """Return the seconds of a number called `timeout` in a large body; 0 without one.

    Only its beginning and its end are searched, where the parameters are. The model's process reads
    the whole body later, and refuses a timeout of another type.
    """
    first = _TIMEOUT_NUMBER.search(body, 0, min(end, MOST_PARSED_BYTES))
    found = first or _TIMEOUT_NUMBER.search(body, max(end - MOST_PARSED_BYTES, 0), end)
    return int(found[1]) / MICROSECONDS if found else 0.0

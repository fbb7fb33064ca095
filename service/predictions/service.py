"""Answers requests for predictions as they come; nothing here blocks the event loop."""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from functools import partial
from typing import Protocol, TypeVar

import structlog
from sqlalchemy.exc import OperationalError

from service.child.requests.json_body import named_calibration
from service.child.requests.media_types import SET_ROWS, SETS
from service.child.requests.open_inference import divide, inflate
from service.errors import (
    ArtifactDamaged,
    DeadlineExceeded,
    InferenceFailed,
    Overloaded,
    ServiceError,
)
from service.predictions.answer_writer import AnswerWriter
from service.predictions.load_calibration import is_deleted
from service.predictions.name_cache import NameCache
from service.predictions.oip_statistics import Statistics
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
# What a body has where that word, or any other, may be written otherwise.
ESCAPE = b"\\"
NANOSECONDS = 1e9

log = structlog.get_logger(__name__)


Result = TypeVar("Result")


class InThread(Protocol):
    """Runs a call in a thread of the few that there are for it."""

    def __call__(self, call: Callable[[], Result], /) -> Coroutine[object, object, Result]:
        """Return what the call returns."""


class Predicting:
    """From a body to a model's queue, and from there to who writes the answers.

    Sets are read before that: ``in_thread`` runs what waits for the process that reads one.
    """

    def __init__(
        self,
        workspace: Workspace,
        models: ServedModels,
        *,
        statistics: Statistics,
        in_thread: InThread,
    ) -> None:
        self._workspace = workspace
        self._models = models
        self._statistics = statistics
        self._in_thread = in_thread
        self._names = NameCache(workspace)
        self._writer = AnswerWriter(workspace.metrics.answers, statistics, fail=self.fail)
        self._loop = asyncio.get_running_loop()

    def begin(self, asked: PredictionRequest) -> None:
        """Answer a request, perhaps before this returns."""
        try:
            if asked.terms.encoding != IDENTITY:
                self._later(asked, self._inflate(asked))
            else:
                self._begin_plain(asked)
        except ServiceError as error:
            self.fail(asked, error)

    def answered(self, answers: Sequence[Answer]) -> None:
        """Take what a run answered."""
        # One tells enough: most are alike.
        answer = answers[0]
        asked: PredictionRequest = answer.request
        if asked.served is not None and asked.kind.media_type != SET_ROWS:
            learn_rows(
                asked.served.model,
                asked.terms.media_type,
                len(asked.body),
                answer.stop - answer.start,
            )
        for found in answers:
            asked = found.request
            if asked.rows is not None:
                asked.rows.adjust(
                    taken=asked.n_rows, used=found.stop - found.start, window=asked.rows_window
                )
        self._writer.write(answers)

    def failed(self, request: PredictionRequest, error: ServiceError) -> None:
        """Take the reason why there is no answer."""
        may_be_gone = isinstance(error, InferenceFailed | ArtifactDamaged)
        if isinstance(error, DeadlineExceeded) or request.served is None or not may_be_gone:
            self.fail(request, error)
        else:
            # The model's files go with a calibration that is deleted while it answers.
            self._later(request, self._fail_unless_deleted(request, request.served, error))

    def fail(self, asked: PredictionRequest, error: Exception) -> None:
        """Tell a request why it has no answer, and count that."""
        if asked.is_told:
            return
        if asked.terms.form == OIP and asked.served is not None:
            seconds = self._loop.time() - asked.arrived
            self._statistics.failed(asked.served.ref, seconds=seconds)
        asked.fail(error)

    async def close(self) -> None:
        """Kill the models' processes; who still waits is told."""
        await self._models.close()
        self._names.close()
        self._writer.close()

    def _begin_plain(self, asked: PredictionRequest) -> None:
        terms = asked.terms
        reference = terms.reference
        if reference is None:
            reference = named_calibration(asked.body)
        if terms.media_type == OIP:
            _look_for_timeout(asked)
        served = self._names.get(asked.tenant_id, reference)
        if served is None:
            self._later(asked, self._find(asked, reference))
        else:
            self._submit(asked, reference, served)

    def _later(self, asked: PredictionRequest, work: Coroutine[object, object, None]) -> None:
        asked.task = self._loop.create_task(self._told(asked, work))

    async def _told(self, asked: PredictionRequest, work: Coroutine[object, object, None]) -> None:
        """Do what takes its time; whoever waits is told its end, at the deadline at the latest."""
        due = self._loop.call_at(asked.arrived + asked.timeout, self._overdue, asked)
        try:
            await work
        except ServiceError as error:
            self.fail(asked, error)
        except Exception as error:
            # Unexpected error: still answer every waiting request.
            log.exception("unexpected_error")
            self.fail(asked, error)
        finally:
            due.cancel()

    def _overdue(self, asked: PredictionRequest) -> None:
        self.fail(asked, DeadlineExceeded("The request waited for longer than its timeout."))
        asked.drop()

    async def _inflate(self, asked: PredictionRequest) -> None:
        limit = self._workspace.limits.bodies.max_bytes
        asked.body = await asyncio.to_thread(
            inflate, asked.body, asked.terms.encoding, max_bytes=limit
        )
        self._begin_plain(asked)

    async def _find(self, asked: PredictionRequest, reference: str) -> None:
        served = await self._names.find(asked.tenant_id, reference)
        if not asked.is_told:
            self._submit(asked, reference, served)

    def _submit(self, asked: PredictionRequest, reference: str, served: ServedCalibration) -> None:
        terms = asked.terms
        asked.served = served
        if terms.media_type in SETS:
            self._later(asked, self._read_set(asked, reference, served))
            return
        asked.kind = body_kind(terms.media_type, reference, terms.header_length)
        asked.n_rows = estimate_rows(served.model, terms.media_type, len(asked.body))
        self._queue(asked, served)

    async def _read_set(
        self, asked: PredictionRequest, reference: str, served: ServedCalibration
    ) -> None:
        """Have a process read the rows of a set, and put those in the queue."""
        if asked.rows is not None:
            asked.rows.check_available()
        if asked.set_content is None:
            asked.set_content = asked.body
        read = partial(
            read_set_rows, self._workspace, served, asked.set_content, seconds=self._left(asked)
        )
        asked.body, asked.n_rows = await self._in_thread(read)
        if not asked.is_told:
            asked.kind = body_kind(SET_ROWS, reference)
            self._queue(asked, served)

    def _left(self, asked: PredictionRequest) -> float:
        """Return the seconds in which there must be an answer."""
        return asked.timeout - (self._loop.time() - asked.arrived)

    def _queue(self, asked: PredictionRequest, served: ServedCalibration) -> None:
        if asked.batcher is not None:
            # Once more. Until it waits again there is no queue to drop it from.
            asked.batcher = None
            asked.renew()
        elif asked.rows is not None:
            asked.rows_window = asked.rows.take(asked.n_rows)
        asked.batcher = self._models.submit(
            served.model.to_serve, asked, timeout=self._left(asked), now=self._loop.time()
        )

    async def _fail_unless_deleted(
        self, asked: PredictionRequest, served: ServedCalibration, error: ServiceError
    ) -> None:
        try:
            deleted = await asyncio.to_thread(
                is_deleted, self._workspace, asked.tenant_id, served.ref.id
            )
        except (Overloaded, OperationalError):
            # The database does not say; what went wrong first is the better reason.
            deleted = False
        if deleted:
            self._models.forget_failure(served.model.to_serve)
            await self._find(asked, asked.kind.reference)
        else:
            self.fail(asked, error)


def _look_for_timeout(asked: PredictionRequest) -> None:
    """Take the protocol's own deadline where a body has one; else it is not read here."""
    body, length = asked.body, asked.terms.header_length
    end = len(body)
    if length is not None:
        if not (length.isdecimal() and length.isascii() and len(length) <= MOST_DIGITS):
            divide(body, length)  # which says what is wrong with it
        end = int(length)
    if body.find(TIMEOUT, 0, end) < 0 and body.find(ESCAPE, 0, end) < 0:
        return
    text, _ = divide(body, length)
    timeout = parse_infer_request(text).timeout_ns / NANOSECONDS
    if timeout:
        asked.timeout = min(asked.timeout, timeout)

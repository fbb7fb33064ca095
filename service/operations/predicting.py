"""Answers requests for predictions as they come; nothing here blocks the event loop."""

import asyncio
import uuid
from collections.abc import Coroutine, Sequence

import structlog
from sqlalchemy.exc import OperationalError

from service.bodies.json_body import named_calibration
from service.bodies.oip.body import divide, inflate
from service.bodies.oip.request import parse_infer_request
from service.errors import (
    ArtifactDamaged,
    DeadlineExceeded,
    InferenceFailed,
    Overloaded,
    ServiceError,
)
from service.operations.answer_writer import AnswerWriter
from service.operations.asked_prediction import AskedPrediction
from service.operations.load_served import is_deleted
from service.operations.oip.statistics import Statistics
from service.operations.row_estimates import estimate_rows, learn_rows
from service.operations.score_answers import InThread, ScoreAnswers
from service.operations.served import ServedCalibration
from service.operations.served_names import ServedNames
from service.operations.workspace import Workspace
from service.runner import Answer, BatchRequest, ServedModels

OIP = "oip"
IDENTITY = "identity"
MOST_DIGITS = 18
TIMEOUT = b'"timeout"'
# What a body has where that word, or any other, may be written otherwise.
ESCAPE = b"\\"
NANOSECONDS = 1e9

log = structlog.get_logger(__name__)


class Predicting:
    """From a body to a model's queue, and from there to who writes the answers."""

    def __init__(
        self,
        workspace: Workspace,
        tenant_id: uuid.UUID,
        models: ServedModels,
        *,
        statistics: Statistics,
        in_thread: InThread,
    ) -> None:
        self._workspace = workspace
        self._tenant_id = tenant_id
        self._models = models
        self._statistics = statistics
        self._scores = ScoreAnswers(
            workspace, tenant_id, statistics=statistics, in_thread=in_thread
        )
        self._names = ServedNames(workspace, tenant_id)
        self._writer = AnswerWriter(workspace.metrics.answers, statistics, fail=self.fail)
        self._loop = asyncio.get_running_loop()

    def begin(self, asked: AskedPrediction) -> None:
        """Answer a request, perhaps before this returns."""
        try:
            if asked.encoding != IDENTITY:
                self._later(asked, self._inflate(asked))
            else:
                self._begin_plain(asked)
        except ServiceError as error:
            self.fail(asked, error)

    def answered(self, answers: Sequence[Answer]) -> None:
        """Take what a run answered."""
        # One tells enough: most are alike.
        answer = answers[0]
        asked: AskedPrediction = answer.request.context
        if asked.served is not None and asked.served.onnx_model is not None:
            learn_rows(
                asked.served.onnx_model,
                asked.media_type,
                len(asked.body),
                answer.stop - answer.start,
            )
        self._writer.write(answers)

    def failed(self, request: BatchRequest, error: ServiceError) -> None:
        """Take the reason why there is no answer."""
        asked: AskedPrediction = request.context
        may_be_gone = isinstance(error, InferenceFailed | ArtifactDamaged)
        if isinstance(error, DeadlineExceeded) or asked.served is None or not may_be_gone:
            self.fail(asked, error)
        else:
            # The model's files go with a calibration that is deleted while it answers.
            self._later(asked, self._fail_unless_deleted(asked, asked.served, error))

    def fail(self, asked: AskedPrediction, error: Exception) -> None:
        """Tell a request why it has no answer, and count that."""
        if asked.is_over:
            return
        if asked.form == OIP and asked.served is not None:
            elapsed = self._loop.time() - asked.arrived
            self._statistics.failed(asked.served.ref, ns=int(elapsed * NANOSECONDS))
        asked.fail(error)

    async def close(self) -> None:
        """Kill the models' processes; who still waits is told."""
        await self._models.close()
        self._names.close()
        self._writer.close()

    def _begin_plain(self, asked: AskedPrediction) -> None:
        if asked.reference is None:
            asked.reference = named_calibration(asked.body)
        if asked.media_type == OIP:
            _look_for_timeout(asked)
        served = self._names.get(asked.reference)
        if served is None:
            self._later(asked, self._find(asked, asked.reference))
        else:
            self._submit(asked, served)

    def _later(self, asked: AskedPrediction, work: Coroutine[object, object, None]) -> None:
        asked.task = self._loop.create_task(self._told(asked, work))

    async def _told(self, asked: AskedPrediction, work: Coroutine[object, object, None]) -> None:
        """Do what takes its time; whoever waits is told its end, at the deadline at the latest."""
        due = self._loop.call_at(asked.arrived + asked.timeout, self._overdue, asked)
        try:
            await work
        except ServiceError as error:
            self.fail(asked, error)
        except Exception as error:
            # A bug; whoever waits is owed an end all the same.
            log.exception("unexpected_error")
            self.fail(asked, error)
        finally:
            due.cancel()

    def _overdue(self, asked: AskedPrediction) -> None:
        self.fail(asked, DeadlineExceeded("The request waited for longer than its timeout."))
        asked.drop()

    async def _inflate(self, asked: AskedPrediction) -> None:
        limit = self._workspace.limits.bodies.max_bytes
        asked.body = await asyncio.to_thread(inflate, asked.body, asked.encoding, max_bytes=limit)
        asked.encoding = IDENTITY
        self._begin_plain(asked)

    async def _find(self, asked: AskedPrediction, reference: str) -> None:
        served = await self._names.find(reference)
        if not asked.is_over:
            self._submit(asked, served)

    def _submit(self, asked: AskedPrediction, served: ServedCalibration) -> None:
        asked.served = served
        if served.onnx_model is None:
            self._later(asked, self._scores.answer(asked, served))
            return
        asked.waiting = BatchRequest(
            asker=self,
            context=asked,
            media_type=asked.media_type,
            body=asked.body,
            reference=asked.reference or "",
            arrived=asked.arrived,
            n_rows=estimate_rows(served.onnx_model, asked.media_type, len(asked.body)),
            header_length=asked.header_length,
        )
        left = asked.timeout - (self._loop.time() - asked.arrived)
        asked.batcher = self._models.submit(served.onnx_model.to_serve, asked.waiting, timeout=left)

    async def _fail_unless_deleted(
        self, asked: AskedPrediction, served: ServedCalibration, error: ServiceError
    ) -> None:
        try:
            deleted = await asyncio.to_thread(
                is_deleted, self._workspace, self._tenant_id, served.ref.id
            )
        except (Overloaded, OperationalError):
            # The database does not say; what went wrong first is the better reason.
            deleted = False
        if deleted:
            if served.onnx_model is not None:
                self._models.forget_failure(served.onnx_model.to_serve)
            await self._find(asked, asked.reference or "")
        else:
            self.fail(asked, error)


def _look_for_timeout(asked: AskedPrediction) -> None:
    """Take the protocol's own deadline where a body has one; else it is not read here."""
    body, length = asked.body, asked.header_length
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

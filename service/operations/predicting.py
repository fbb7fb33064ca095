"""Answers requests for predictions as they come; nothing here blocks the event loop."""

import asyncio
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
from service.runner import Answer, ServedModels, body_kind

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
        models: ServedModels,
        *,
        statistics: Statistics,
        in_thread: InThread,
    ) -> None:
        self._workspace = workspace
        self._models = models
        self._statistics = statistics
        self._scores = ScoreAnswers(workspace, statistics=statistics, in_thread=in_thread)
        self._names = ServedNames(workspace)
        self._writer = AnswerWriter(workspace.metrics.answers, statistics, fail=self.fail)
        self._loop = asyncio.get_running_loop()

    def begin(self, asked: AskedPrediction) -> None:
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
        asked: AskedPrediction = answer.request
        if asked.served is not None and asked.served.onnx_model is not None:
            learn_rows(
                asked.served.onnx_model,
                asked.terms.media_type,
                len(asked.body),
                answer.stop - answer.start,
            )
        for found in answers:
            asked = found.request
            if asked.rows is not None:
                asked.rows.settle(taken=asked.n_rows, used=found.stop - found.start)
        self._writer.write(answers)

    def failed(self, request: AskedPrediction, error: ServiceError) -> None:
        """Take the reason why there is no answer."""
        may_be_gone = isinstance(error, InferenceFailed | ArtifactDamaged)
        if isinstance(error, DeadlineExceeded) or request.served is None or not may_be_gone:
            self.fail(request, error)
        else:
            # The model's files go with a calibration that is deleted while it answers.
            self._later(request, self._fail_unless_deleted(request, request.served, error))

    def fail(self, asked: AskedPrediction, error: Exception) -> None:
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

    def _begin_plain(self, asked: AskedPrediction) -> None:
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
        asked.body = await asyncio.to_thread(
            inflate, asked.body, asked.terms.encoding, max_bytes=limit
        )
        self._begin_plain(asked)

    async def _find(self, asked: AskedPrediction, reference: str) -> None:
        served = await self._names.find(asked.tenant_id, reference)
        if not asked.is_told:
            self._submit(asked, reference, served)

    def _submit(self, asked: AskedPrediction, reference: str, served: ServedCalibration) -> None:
        terms, model = asked.terms, served.onnx_model
        asked.served = served
        asked.kind = body_kind(terms.media_type, reference, terms.header_length)
        if model is None:
            self._later(asked, self._scores.answer(asked, served))
            return
        asked.n_rows = estimate_rows(model, terms.media_type, len(asked.body))
        if asked.batcher is not None:
            # Once more. Until it waits again there is no queue to drop it from.
            asked.batcher = None
            asked.renew()
        elif asked.rows is not None:
            asked.rows.take(asked.n_rows)
        now = self._loop.time()
        left = asked.timeout - (now - asked.arrived)
        asked.batcher = self._models.submit(model.to_serve, asked, timeout=left, now=now)

    async def _fail_unless_deleted(
        self, asked: AskedPrediction, served: ServedCalibration, error: ServiceError
    ) -> None:
        try:
            deleted = await asyncio.to_thread(
                is_deleted, self._workspace, asked.tenant_id, served.ref.id
            )
        except (Overloaded, OperationalError):
            # The database does not say; what went wrong first is the better reason.
            deleted = False
        if deleted:
            if served.onnx_model is not None:
                self._models.forget_failure(served.onnx_model.to_serve)
            await self._find(asked, asked.kind.reference)
        else:
            self.fail(asked, error)


def _look_for_timeout(asked: AskedPrediction) -> None:
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

"""Answers requests for predictions as they come; nothing here blocks the event loop."""

import asyncio
import uuid
from collections.abc import Callable, Coroutine, Sequence

from service.bodies import BODIES
from service.bodies.json_body import named_calibration
from service.bodies.oip.body import divide, inflate
from service.bodies.oip.infer_body import InferBody, read_infer
from service.bodies.oip.request import parse_infer_request
from service.bodies.oip.wanted import Wanted, wanted_of
from service.bodies.request import PredictRequest
from service.errors import ArtifactDamaged, InferenceFailed, ServiceError
from service.operations.answer_writer import AnswerWriter
from service.operations.answered_rows import AnsweredRows
from service.operations.asked_prediction import AskedPrediction, PredictionAnswer
from service.operations.load_served import is_deleted
from service.operations.oip.metadata import input_tensors
from service.operations.oip.statistics import Statistics
from service.operations.predict import predict_scores
from service.operations.row_estimates import RowEstimates
from service.operations.served import ServedCalibration
from service.operations.served_names import ServedNames
from service.operations.workspace import Workspace
from service.runner import Answer, BatchRequest, ServedModels

OIP = "oip"
IDENTITY = "identity"
TIMEOUT = b'"timeout"'
NANOSECONDS = 1e9

# Runs a call in a thread of the few that there are for it.
InThread = Callable[[Callable[[], PredictionAnswer]], Coroutine[object, object, PredictionAnswer]]


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
        self._in_thread = in_thread
        self._names = ServedNames(workspace, tenant_id)
        self._estimates = RowEstimates()
        self._writer = AnswerWriter(workspace.metrics.answers, statistics)
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
        for answer in answers:
            asked: AskedPrediction = answer.request.context
            if asked.served is not None and asked.served.onnx_model is not None:
                self._estimates.learn(
                    asked.served.onnx_model,
                    asked.media_type,
                    len(asked.body),
                    answer.stop - answer.start,
                )
        self._writer.write(answers)

    def failed(self, request: BatchRequest, error: ServiceError) -> None:
        """Take the reason why there is no answer."""
        asked: AskedPrediction = request.context
        gone = isinstance(error, InferenceFailed | ArtifactDamaged)
        if gone and asked.served is not None:
            # The model's files go with a calibration that is deleted while it answers.
            self._later(asked, self._fail_unless_deleted(asked, asked.served, error))
        else:
            self.fail(asked, error)

    def fail(self, asked: AskedPrediction, error: ServiceError) -> None:
        """Tell a request why it has no answer, and count that."""
        if asked.form == OIP and asked.served is not None:
            elapsed = self._loop.time() - asked.arrived
            self._statistics.failed(asked.served.ref, ns=int(elapsed * NANOSECONDS))
        asked.fail(error)

    async def close(self) -> None:
        """Kill the models' processes; who still waits is told."""
        await self._models.close()
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
        try:
            await work
        except ServiceError as error:
            self.fail(asked, error)

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
            self._later(asked, self._answer_scores(asked, served))
            return
        asked.waiting = BatchRequest(
            asker=self,
            context=asked,
            media_type=asked.media_type,
            body=asked.body,
            reference=asked.reference or "",
            arrived=asked.arrived,
            n_rows=self._estimates.n_rows(served.onnx_model, asked.media_type, len(asked.body)),
            header_length=asked.header_length,
        )
        left = asked.timeout - (self._loop.time() - asked.arrived)
        asked.batcher = self._models.submit(served.onnx_model.to_serve, asked.waiting, timeout=left)

    async def _fail_unless_deleted(
        self, asked: AskedPrediction, served: ServedCalibration, error: ServiceError
    ) -> None:
        deleted = await asyncio.to_thread(
            is_deleted, self._workspace, self._tenant_id, served.ref.id
        )
        if deleted:
            await self._find(asked, asked.reference or "")
        else:
            self.fail(asked, error)

    async def _answer_scores(self, asked: AskedPrediction, served: ServedCalibration) -> None:
        """Answer for a calibration without a model, whose rows are its outputs."""
        answer = await self._in_thread(lambda: self._from_scores(asked, served))
        asked.answer(answer)

    def _from_scores(self, asked: AskedPrediction, served: ServedCalibration) -> PredictionAnswer:
        request, wanted = self._read(asked)
        batch = predict_scores(self._workspace, served, request)
        rows = AnsweredRows(batch)
        if asked.form == OIP:
            found = rows.oip(0, rows.n_rows, wanted or Wanted())
            return PredictionAnswer(rows.ref, found.body, found.header_length)
        written = rows.json if asked.form == "json" else rows.npz
        return PredictionAnswer(rows.ref, written(0, rows.n_rows))

    def _read(self, asked: AskedPrediction) -> tuple[PredictRequest, Wanted | None]:
        limits, reference = self._workspace.limits.bodies, asked.reference or ""
        if asked.media_type == OIP:
            infer, request = read_infer(
                InferBody(reference, asked.body, asked.encoding, asked.header_length),
                limits=limits,
                inputs=lambda: input_tensors(self._workspace, self._tenant_id, reference),
            )
            return request, wanted_of(infer)
        parameter = None if asked.media_type == "application/json" else reference
        return BODIES[asked.media_type](asked.body, calibration=parameter, limits=limits), None


def _look_for_timeout(asked: AskedPrediction) -> None:
    """Take the protocol's own deadline where a body has one; else it is not read here."""
    text, _ = divide(asked.body, asked.header_length)
    if TIMEOUT in bytes(text):
        timeout = parse_infer_request(text).timeout_ns / NANOSECONDS
        if timeout:
            asked.timeout = min(asked.timeout, timeout)

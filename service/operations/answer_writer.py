"""From what one run of a model answered to the answer of each request that took part."""

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TypeAlias

import numpy as np
import structlog

from service.bodies.request import Array, PredictRequest, supplied_columns
from service.errors import InferenceFailed, ServiceError
from service.metrics import AnswerCounts
from service.operations.answer_body import answer_body
from service.operations.answered_rows import AnsweredRows
from service.operations.asked_prediction import AskedPrediction, PredictionAnswer
from service.operations.few_rows import FewRows, few_rows
from service.operations.oip.statistics import Statistics
from service.operations.predict import answers_of, supplied_events
from service.operations.served import ServedCalibration
from service.runner import Answer
from service.runner.batch_messages import SuppliedColumn
from service.runner.frames import DTYPES

# More rows are written in a thread, so that the event loop is not held up.
MOST_ROWS_AT_ONCE = 256

Rows: TypeAlias = AnsweredRows | FewRows
Written: TypeAlias = "list[PredictionAnswer | ServiceError]"

log = structlog.get_logger(__name__)


class AnswerWriter:
    """Looks up bins and writes answers, once for all requests of a run that may be together.

    ``fail`` is called for a request that cannot be answered so.
    """

    def __init__(
        self,
        counts: AnswerCounts,
        statistics: Statistics,
        *,
        fail: Callable[[AskedPrediction, Exception], None],
    ) -> None:
        self._counts = counts
        self._statistics = statistics
        self._fail = fail
        self._loop = asyncio.get_running_loop()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="answers")

    def write(self, answers: Sequence[Answer]) -> None:
        """Tell each request its answer, at once or a moment later."""
        try:
            if not self._write_together(answers):
                for answer in answers:
                    self._write_alone(answer)
        except Exception as error:
            # A bug; whoever waits is owed an end all the same.
            log.exception("unexpected_error")
            self._fail_all(answers, error)

    def close(self) -> None:
        """Wait for what is being written."""
        self._thread.shutdown()

    def _write_together(self, answers: Sequence[Answer]) -> bool:
        """Answer requests of one calibration if all rows of one matrix are theirs."""
        matrix = answers[0].matrix
        served: ServedCalibration = answers[0].request.served
        n_rows = 0
        for answer in answers:
            if (
                answer.matrix is not matrix
                or answer.request.served is not served
                or answer.supplied
            ):
                return False
            n_rows += answer.stop - answer.start
        # Rows whose requests nobody waits for any more are not to be counted.
        if n_rows != matrix.n_rows:
            return False
        few = few_rows(served, matrix)
        if few is not None:
            self._tell(answers, self._written(few, answers))
            return True
        if supplied_events(served):
            return False
        outputs = matrix.outputs
        batch = partial(answers_of, served, outputs, outputs.uncertainty)
        self._write(answers, lambda: AnsweredRows(batch()), n_rows)
        return True

    def _write_alone(self, answer: Answer) -> None:
        served: ServedCalibration = answer.request.served
        own = answer.matrix.rows(answer.start, answer.stop)
        try:
            supplied = _supplied(served, answer)
        except ServiceError as error:
            self._fail(answer.request, error)
            return
        alone = Answer(answer.request, own, 0, own.n_rows, answer.wanted, answer.supplied)
        columns = {**own.outputs.uncertainty} | supplied
        batch = partial(answers_of, served, own.outputs, columns)
        self._write([alone], lambda: AnsweredRows(batch()), own.n_rows)

    def _write(self, answers: Sequence[Answer], make: Callable[[], Rows], n_rows: int) -> None:
        if n_rows <= MOST_ROWS_AT_ONCE:
            self._tell(answers, self._written(make(), answers))
            return
        writing = self._loop.run_in_executor(self._thread, lambda: self._written(make(), answers))
        writing.add_done_callback(partial(self._written_in_thread, answers))

    def _written_in_thread(
        self, answers: Sequence[Answer], writing: "asyncio.Future[Written]"
    ) -> None:
        try:
            self._tell(answers, writing.result())
        except Exception as error:
            log.exception("unexpected_error")
            self._fail_all(answers, error)

    def _written(self, rows: Rows, answers: Sequence[Answer]) -> Written:
        written: Written = []
        n_answered = 0
        for answer in answers:
            try:
                body = answer_body(
                    rows, answer.request.terms.form, answer.start, answer.stop, answer.wanted
                )
            except ServiceError as error:
                written.append(error)
            else:
                written.append(body)
                n_answered += answer.stop - answer.start
        if n_answered == rows.n_rows:
            rows.count(self._counts, 0, rows.n_rows)
        else:
            for answer, found in zip(answers, written, strict=True):
                if not isinstance(found, ServiceError):
                    rows.count(self._counts, answer.start, answer.stop)
        return written

    def _tell(self, answers: Sequence[Answer], written: Written) -> None:
        now = self._loop.time()
        requests, rows, waited, ran = 0, 0, 0.0, 0.0
        for answer, found in zip(answers, written, strict=True):
            asked: AskedPrediction = answer.request
            if asked.is_told:
                continue
            if isinstance(found, ServiceError):
                self._fail(asked, found)
                continue
            asked.answer(found)
            if asked.terms.form == "oip":
                requests += 1
                rows += answer.stop - answer.start
                waited += asked.began - asked.arrived
                ran += now - asked.began
        if requests:
            ref = answers[0].request.served.ref
            self._statistics.succeeded(ref, requests=requests, rows=rows, waited=waited, ran=ran)

    def _fail_all(self, answers: Sequence[Answer], error: Exception) -> None:
        for answer in answers:
            self._fail(answer.request, error)


def _supplied(served: ServedCalibration, answer: Answer) -> dict[str, Array]:
    """Return the uncertainties that came with a request, by column.

    Raises
    ------
    ServiceError
        If they are not those that are needed.
    """
    columns = supplied_events(served)
    sent = {name: _array(column) for name, column in answer.supplied.items()}
    request = PredictRequest(answer.request.kind.reference, {}, sent)
    found = supplied_columns(request, columns, n_rows=answer.stop - answer.start)
    return {columns[name]: values for name, values in found.items()}


def _array(column: SuppliedColumn) -> Array:
    try:
        return np.frombuffer(column.data, DTYPES[column.dtype]).reshape(column.shape)
    except (KeyError, ValueError) as error:
        raise InferenceFailed("The process that ran the ONNX model answered nonsense.") from error

"""From what one run of a model answered to the answer of each request that took part."""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor

import msgspec
import numpy as np
import structlog

from service.bodies.oip.wanted import Wanted
from service.bodies.request import Array, PredictRequest, supplied_columns
from service.errors import InferenceFailed, ServiceError
from service.metrics import AnswerCounts
from service.operations.answer_body import answer_body
from service.operations.answered_rows import AnsweredRows
from service.operations.asked_prediction import AskedPrediction, PredictionAnswer
from service.operations.few_rows import FEW_ROWS, FewRows, is_for
from service.operations.oip.statistics import Spent, Statistics
from service.operations.predict import answers_of, count_answers, supplied_events
from service.operations.served import ServedCalibration
from service.runner import Answer, HeadOutputs
from service.runner.batch_messages import SuppliedColumn
from service.runner.frames import DTYPES

# More rows are written in a thread, so that the event loop is not held up.
MOST_ROWS_AT_ONCE = 256
NANOSECONDS = 1e9

log = structlog.get_logger(__name__)


class _Cut(msgspec.Struct, eq=False):
    """The rows of one request among those of a run."""

    asked: AskedPrediction
    start: int
    stop: int
    wanted: Wanted | None
    began: float


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
        for served, outputs, group in _groups(answers):
            if supplied_events(served) or any(answer.supplied for answer in group):
                for answer in group:
                    self._write_supplied(served, answer)
            else:
                cuts = [
                    _Cut(a.request.context, a.start, a.stop, a.wanted, a.request.began)
                    for a in group
                ]
                self._write(served, outputs, cuts)

    def close(self) -> None:
        """Wait for what is being written."""
        self._thread.shutdown()

    def _write_supplied(self, served: ServedCalibration, answer: Answer) -> None:
        asked: AskedPrediction = answer.request.context
        outputs = answer.outputs.rows(answer.start, answer.stop)
        n_rows = answer.stop - answer.start
        columns = supplied_events(served)
        try:
            sent = {name: _array(column) for name, column in answer.supplied.items()}
            request = PredictRequest(asked.reference or "", {}, sent)
            found = supplied_columns(request, columns, n_rows=n_rows)
        except ServiceError as error:
            self._fail(asked, error)
            return
        supplied = {columns[name]: values for name, values in found.items()}
        whole = HeadOutputs(
            outputs.top_classes, outputs.top_scores, {**outputs.uncertainty} | supplied
        )
        self._write(served, whole, [_Cut(asked, 0, n_rows, answer.wanted, answer.request.began)])

    def _write(self, served: ServedCalibration, outputs: HeadOutputs, cuts: list[_Cut]) -> None:
        if len(outputs.top_classes) <= MOST_ROWS_AT_ONCE:
            self._tell(self._written(served, outputs, cuts))
            return
        writing = self._loop.run_in_executor(self._thread, self._written, served, outputs, cuts)
        writing.add_done_callback(lambda done: self._tell(done.result()))

    def _written(
        self, served: ServedCalibration, outputs: HeadOutputs, cuts: list[_Cut]
    ) -> Sequence[tuple[_Cut, PredictionAnswer | Exception]]:
        try:
            rows = _answered(served, outputs)
            written = [(cut, _body(rows, cut)) for cut in cuts]
            if not any(isinstance(answer, Exception) for _, answer in written):
                rows.count(self._counts)
            else:
                self._count_answered(served, outputs, written)
        except Exception as error:
            # A bug; whoever waits is owed an end all the same.
            log.exception("unexpected_error")
            return [(cut, error) for cut in cuts]
        return written

    def _count_answered(
        self,
        served: ServedCalibration,
        outputs: HeadOutputs,
        written: Iterable[tuple[_Cut, PredictionAnswer | Exception]],
    ) -> None:
        for cut, answer in written:
            if not isinstance(answer, Exception):
                own = outputs.rows(cut.start, cut.stop)
                count_answers(self._counts, answers_of(served, own, own.uncertainty))

    def _tell(self, written: Iterable[tuple[_Cut, PredictionAnswer | Exception]]) -> None:
        now = self._loop.time()
        ref, requests, rows, queued, ran = None, 0, 0, 0.0, 0.0
        for cut, answer in written:
            if cut.asked.is_over:
                continue
            if isinstance(answer, Exception):
                self._fail(cut.asked, answer)
                continue
            cut.asked.answer(answer)
            if cut.asked.form == "oip":
                ref = answer.ref
                requests += 1
                rows += cut.stop - cut.start
                queued += cut.began - cut.asked.arrived
                ran += now - cut.began
        if ref is not None:
            spent = Spent(
                queue=int(queued * NANOSECONDS),
                compute_input=0,
                compute_infer=int(ran * NANOSECONDS),
                compute_output=0,
            )
            self._statistics.succeeded(ref, requests=requests, rows=rows, spent=spent)


def _answered(served: ServedCalibration, outputs: HeadOutputs) -> AnsweredRows | FewRows:
    if len(outputs.top_classes) <= FEW_ROWS and is_for(served):
        return FewRows(served, outputs)
    return AnsweredRows(answers_of(served, outputs, outputs.uncertainty))


def _groups(
    answers: Sequence[Answer],
) -> Iterable[tuple[ServedCalibration, HeadOutputs, list[Answer]]]:
    """Yield answers of one calibration together, where all rows of the outputs are theirs."""
    first = answers[0]
    served, outputs = first.request.context.served, first.outputs
    # Rows whose requests nobody waits for any more are not to be counted.
    are_all = sum(a.stop - a.start for a in answers) == len(outputs.top_classes)
    if are_all and all(
        a.outputs is outputs and a.request.context.served is served for a in answers
    ):
        yield served, outputs, list(answers)
        return
    for answer in answers:
        yield (
            answer.request.context.served,
            answer.outputs.rows(answer.start, answer.stop),
            [
                Answer(
                    answer.request,
                    answer.outputs.rows(answer.start, answer.stop),
                    0,
                    answer.stop - answer.start,
                    answer.wanted,
                    answer.supplied,
                )
            ],
        )


def _body(rows: AnsweredRows | FewRows, cut: _Cut) -> PredictionAnswer | ServiceError:
    try:
        return answer_body(rows, cut.asked.form, cut.start, cut.stop, cut.wanted)
    except ServiceError as error:
        return error


def _array(column: SuppliedColumn) -> Array:
    try:
        return np.frombuffer(column.data, DTYPES[column.dtype]).reshape(column.shape)
    except (KeyError, ValueError) as error:
        raise InferenceFailed("The process that ran the ONNX model answered nonsense.") from error

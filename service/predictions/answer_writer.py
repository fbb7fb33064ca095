"""Writing of responses from the answers of a model's run."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass
from functools import cached_property
from typing import TypeAlias

import structlog

from howsure.npz import npz_bytes
from service.errors import ServiceError
from service.http.worker_threads import Lane
from service.metrics.answers import AnswerCounts
from service.predictions.json_answers import JsonAnswers
from service.predictions.lookup import PredictionBatch, answers_of
from service.predictions.prediction_request import AnswerForm, PredictionAnswer, PredictionRequest
from service.predictions.served_calibration import ServedCalibration
from service.predictions.tensor_answers import (
    Arrays,
    TensorAnswers,
    prediction_arrays,
)
from service.runner.messages.open_inference import RequestedOutputs
from service.runner.model_output import OutputMatrix
from service.runner.predict_requests import Answer

ALL_OUTPUTS = RequestedOutputs()


@dataclass(eq=False, repr=False)
class BatchAnswers:
    """The answers of one run, written in the format that each request asks for.

    All rows are prepared in a format when the first request asks for it.
    """

    served: ServedCalibration
    matrix: OutputMatrix

    def __post_init__(self) -> None:
        self.n_rows = self.matrix.n_rows

    def write(self, form: AnswerForm, answer: Answer) -> PredictionAnswer:
        """Return the response body for the rows of an answer.

        Raises
        ------
        InvalidInput
            If the request names an unknown output.
        """
        ref, start, stop = self.served.ref, answer.start, answer.stop
        if form == "json":
            body = self._json.encode(start, stop, by_position=answer.head.by_position)
            return PredictionAnswer(ref, body)
        if form == "npz":
            own = {name: array[start:stop] for name, array in self._arrays.items()}
            return PredictionAnswer(ref, npz_bytes(own), by_position=answer.head.by_position)
        body, header_length = self._tensors.encode(start, stop, answer.head.wanted or ALL_OUTPUTS)
        return PredictionAnswer(ref, body, header_length)

    def record_metrics(self, counts: AnswerCounts, start: int, stop: int) -> None:
        """Count the rows from ``start`` to before ``stop`` by bin and flag."""
        answers = self._json if "_json" in self.__dict__ else self._batch
        answers.record_metrics(counts, slice(start, stop))

    @cached_property
    def _batch(self) -> PredictionBatch:
        return answers_of(self.served, self.matrix.outputs)

    @cached_property
    def _json(self) -> JsonAnswers:
        few = JsonAnswers.of_numbers(self.served, self.matrix)
        return JsonAnswers.of_batch(self._batch) if few is None else few

    @cached_property
    def _arrays(self) -> Arrays:
        return prediction_arrays(self._batch)

    @cached_property
    def _tensors(self) -> TensorAnswers:
        return TensorAnswers(self.served, self._arrays)


# More rows are written in a thread: they would block the event loop.
MOST_ROWS_AT_ONCE = 256

Written: TypeAlias = "list[PredictionAnswer | ServiceError]"

log = structlog.get_logger(__name__)


@dataclass(eq=False, repr=False)
class AnswerWriter:
    """Looks up bins and writes responses, once for all requests of a run where possible.

    ``fail`` is called for each request that cannot be answered. Many rows are written in ``lane``,
    where tenants take turns.
    """

    counts: AnswerCounts
    _: KW_ONLY
    lane: Lane
    fail: Callable[[PredictionRequest, Exception], None]

    def __post_init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._writing: set[asyncio.Task[None]] = set()
        self._counts_all = True

    def write(self, answers: Sequence[Answer]) -> None:
        """Answer each request, at once or from a thread."""
        try:
            # By calibration and matrix: a model may answer for several calibrations.
            groups: dict[tuple[int, int], list[Answer]] = {}
            for answer in answers:
                key = id(answer.request.served), id(answer.matrix)
                groups.setdefault(key, []).append(answer)
            for group in groups.values():
                first = group[0]
                self._write(group, BatchAnswers(first.request.served, first.matrix))
        except Exception as error:
            # Unexpected error: still answer every waiting request.
            log.exception("unexpected_error")
            self._fail_all(answers, error)

    async def close(self) -> None:
        """Wait for responses that are being written."""
        await asyncio.gather(*self._writing)

    def _write(self, answers: Sequence[Answer], rows: BatchAnswers) -> None:
        if rows.n_rows <= MOST_ROWS_AT_ONCE:
            self._tell(answers, self._written(rows, answers))
            return
        writing = self._loop.create_task(self._write_in_turn(answers, rows))
        self._writing.add(writing)
        writing.add_done_callback(self._writing.discard)

    async def _write_in_turn(self, answers: Sequence[Answer], rows: BatchAnswers) -> None:
        tenant_id = answers[0].request.tenant_id
        try:
            self._tell(answers, await self.lane.run(tenant_id, self._written, rows, answers))
        except Exception as error:
            log.exception("unexpected_error")
            self._fail_all(answers, error)

    def _written(self, rows: BatchAnswers, answers: Sequence[Answer]) -> Written:
        written: Written = []
        n_answered = 0
        for answer in answers:
            try:
                body = rows.write(answer.request.options.form, answer)
            except ServiceError as error:
                written.append(error)
            else:
                written.append(body)
                n_answered += answer.stop - answer.start
        if n_answered == rows.n_rows:
            self._count(rows, 0, rows.n_rows)
        else:
            for answer, outcome in zip(answers, written, strict=True):
                if not isinstance(outcome, ServiceError):
                    self._count(rows, answer.start, answer.stop)
        return written

    def _count(self, rows: BatchAnswers, start: int, stop: int) -> None:
        """Count answered rows; a failure is logged the first time, and no response fails by it."""
        try:
            rows.record_metrics(self.counts, start, stop)
        except Exception:
            if self._counts_all:
                log.exception("answers_not_counted")
            self._counts_all = False

    def _tell(self, answers: Sequence[Answer], written: Written) -> None:
        for answer, found in zip(answers, written, strict=True):
            request: PredictionRequest = answer.request
            if request.is_settled:
                continue
            if isinstance(found, ServiceError):
                self.fail(request, found)
                continue
            request.answer(found)

    def _fail_all(self, answers: Sequence[Answer], error: Exception) -> None:
        for answer in answers:
            self.fail(answer.request, error)

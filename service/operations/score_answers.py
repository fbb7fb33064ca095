"""Answers for calibrations without a model, whose rows are its outputs."""

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Protocol, TypeVar

from service.bodies import BODIES, JSON
from service.bodies.oip.infer_body import InferBody, read_infer
from service.bodies.oip.wanted import Wanted, wanted_of
from service.bodies.request import PredictRequest
from service.bodies.set_arrays import set_arrays
from service.datasets import Reading
from service.operations.answer_body import answer_body
from service.operations.answered_rows import AnsweredRows
from service.operations.asked_prediction import AskedPrediction, PredictionAnswer
from service.operations.oip.metadata import input_tensors
from service.operations.oip.statistics import Statistics
from service.operations.predict import count_answers, predict_scores
from service.operations.served import ServedCalibration
from service.operations.workspace import Workspace

IDENTITY = "identity"

Result = TypeVar("Result")


class InThread(Protocol):
    """Runs a call in a thread of the few that there are for it."""

    def __call__(self, call: Callable[[], Result], /) -> Coroutine[object, object, Result]:
        """Return what the call returns."""


@dataclass(frozen=True, slots=True)
class _Written:
    answer: PredictionAnswer
    n_rows: int
    began: float


class ScoreAnswers:
    """Reads a body, answers it and writes the answer, in a thread."""

    def __init__(
        self,
        workspace: Workspace,
        *,
        statistics: Statistics,
        in_thread: InThread,
    ) -> None:
        self._workspace = workspace
        self._statistics = statistics
        self._in_thread = in_thread
        self._loop = asyncio.get_running_loop()

    async def answer(self, asked: AskedPrediction, served: ServedCalibration) -> None:
        """Answer a request.

        Raises
        ------
        Overloaded
            If as many wait for a thread as may.
        TooManyRequests
            If the tenant has asked for as many rows as it may.
        ServiceError
            If the body breaks a rule.
        """
        if asked.rows is not None:
            asked.rows.require_some()
        written = await self._in_thread(lambda: self._written(asked, served))
        if asked.rows is not None:
            # How many there are is not guessed before: they pay for themselves afterwards.
            asked.rows.settle(taken=0, used=written.n_rows)
        if asked.is_told:
            return
        asked.answer(written.answer)
        if asked.terms.form == "oip":
            self._statistics.succeeded(
                served.ref,
                requests=1,
                rows=written.n_rows,
                waited=written.began - asked.arrived,
                ran=self._loop.time() - written.began,
            )

    def _written(self, asked: AskedPrediction, served: ServedCalibration) -> _Written:
        began = self._loop.time()
        request, wanted = self._read(asked, n_classes=len(served.class_names))
        batch = predict_scores(served, request, max_rows=self._workspace.limits.bodies.max_rows)
        rows = AnsweredRows(batch)
        answer = answer_body(rows, asked.terms.form, 0, rows.n_rows, wanted)
        count_answers(self._workspace.metrics.answers, batch)
        return _Written(answer, rows.n_rows, began)

    def _read(
        self, asked: AskedPrediction, *, n_classes: int
    ) -> tuple[PredictRequest, Wanted | None]:
        limits, kind = self._workspace.limits.bodies.of_rows_of(n_classes), asked.kind
        if kind.media_type == "oip":
            infer, request = read_infer(
                InferBody(kind.reference, asked.body, IDENTITY, kind.header_length),
                limits=limits,
                inputs=lambda: input_tensors(self._workspace, asked.tenant_id, kind.reference),
            )
            return request, wanted_of(infer)
        parameter = None if kind.media_type == JSON else kind.reference
        request = BODIES[kind.media_type](asked.body, calibration=parameter, limits=limits)
        if request.content is not None:
            request = set_arrays(request, request.content, reading=Reading(), limits=limits)
        return request, None

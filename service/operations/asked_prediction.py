"""One request for predictions, whatever it came by, and who is told its answer."""

import asyncio
from collections.abc import Callable
from typing import Literal, TypeAlias

import msgspec

from service.operations.served import ServedCalibration
from service.runner import Batcher, BatchRequest
from service.storage.references import CalibrationRef

AnswerForm: TypeAlias = Literal["json", "npz", "oip"]


class PredictionAnswer(msgspec.Struct, eq=False):
    """A body, and how much of it is JSON where that is not all of a tensor answer."""

    ref: CalibrationRef
    body: bytes
    header_length: int | None = None


class AskedPrediction(msgspec.Struct, eq=False):
    """A body and what was said beside it.

    Attributes
    ----------
    media_type
        One of `service.bodies.BODIES`, or ``oip``.
    reference
        The calibration; None where the body names it.
    form
        How the answer is written.
    timeout
        Seconds until there must be an answer.
    arrived
        The event loop's time.
    done, failed
        One of them is called, once, unless the request was dropped. A failure that is no
        `ServiceError` is a bug of the service.
    """

    media_type: str
    body: bytes
    reference: str | None
    form: AnswerForm
    timeout: float
    arrived: float
    done: Callable[[PredictionAnswer], None]
    failed: Callable[[Exception], None]
    encoding: str = "identity"
    header_length: str | None = None
    served: ServedCalibration | None = None
    waiting: BatchRequest | None = None
    batcher: Batcher | None = None
    task: "asyncio.Task[None] | None" = None
    is_over: bool = False

    def answer(self, answer: PredictionAnswer) -> None:
        """Tell the answer."""
        if not self.is_over:
            self.is_over = True
            self.done(answer)

    def fail(self, error: Exception) -> None:
        """Tell why there is none."""
        if not self.is_over:
            self.is_over = True
            self.failed(error)

    def drop(self) -> None:
        """Let go of it: the client left."""
        self.is_over = True
        if self.task is not None:
            self.task.cancel()
        if self.waiting is not None and self.batcher is not None:
            self.batcher.drop(self.waiting)

"""One request for predictions, whatever it came by, and who is told its answer."""

import asyncio
import uuid
from typing import Literal, TypeAlias

import msgspec

from service.operations.served import ServedCalibration
from service.operations.tenants import Allowance
from service.runner import Batcher, BatchRequest
from service.storage.references import CalibrationRef

AnswerForm: TypeAlias = Literal["json", "npz", "oip"]


class PredictionTerms(msgspec.Struct, eq=False, frozen=True):
    """What is said beside a body, the same for all requests that say the same.

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
    """

    media_type: str
    reference: str | None
    form: AnswerForm
    timeout: float
    encoding: str = "identity"
    header_length: str | None = None


class PredictionAnswer(msgspec.Struct, eq=False):
    """A body, and how much of it is JSON where that is not all of a tensor answer."""

    ref: CalibrationRef
    body: bytes
    header_length: int | None = None


class AskedPrediction(BatchRequest, eq=False, kw_only=True):
    """A body on its terms. Who asks makes a class of it that is told the answer.

    Attributes
    ----------
    tenant_id
        Whose calibration is asked.
    timeout
        Seconds until there must be an answer; no longer than the terms say.
    rows
        What its rows are counted against; None where they may be any number.
    is_told
        Whether it was told its end, or was dropped.
    """

    tenant_id: uuid.UUID
    terms: PredictionTerms
    timeout: float
    rows: Allowance | None = None
    served: ServedCalibration | None = None
    batcher: Batcher | None = None
    task: "asyncio.Task[None] | None" = None
    is_told: bool = False

    def done(self, answer: PredictionAnswer) -> None:
        """Pass the answer on."""
        raise NotImplementedError

    def failed(self, error: Exception) -> None:
        """Pass on why there is none; what is no `ServiceError` is a bug of the service."""
        raise NotImplementedError

    def answer(self, answer: PredictionAnswer) -> None:
        """Tell the answer."""
        if not self.is_told:
            self.is_told = True
            self.done(answer)

    def fail(self, error: Exception) -> None:
        """Tell why there is none."""
        if not self.is_told:
            self.is_told = True
            self.failed(error)

    def drop(self) -> None:
        """Let go of it: the client left."""
        self.is_told = True
        if self.task is not None:
            self.task.cancel()
        if self.batcher is not None:
            self.batcher.drop(self)

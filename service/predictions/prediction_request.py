"""How many rows a body holds, guessed from its length before anybody reads it."""

import asyncio
import uuid
from typing import Literal, TypeAlias

import msgspec

from service.access.rate_limits import RateLimit
from service.child.requests.media_types import JSON
from service.predictions.served_calibration import ServedCalibration, ServedModel
from service.runner.batcher import Batcher
from service.runner.predict_requests import BatchRequest
from service.storage.calibration_queries import CalibrationRef

# Of a guess, how much the last answer counts.
SHARE = 0.2
# JSON takes at least so many bytes for each that the number takes itself.
JSON_FACTOR = 2


def estimate_rows(model: ServedModel, media_type: str, n_bytes: int) -> int:
    """Return a number of rows, at least 1."""
    known = model.bytes_a_row.get(media_type)
    if known is None:
        known = float(model.row_bytes * (JSON_FACTOR if media_type == JSON else 1))
    return round(n_bytes / known) or 1


def learn_rows(model: ServedModel, media_type: str, n_bytes: int, n_rows: int) -> None:
    """Take what a body turned out to hold."""
    found = n_bytes / n_rows
    known = model.bytes_a_row.get(media_type, found)
    model.bytes_a_row[media_type] = known + SHARE * (found - known)


AnswerForm: TypeAlias = Literal["json", "npz", "oip"]


class PredictionOptions(msgspec.Struct, eq=False, frozen=True):
    """What is said beside a body, the same for all requests that say the same.

    Attributes
    ----------
    media_type
        One of `service.child.requests.media_types.BODIES`, or ``oip``.
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


class PredictionRequest(BatchRequest, eq=False, kw_only=True):
    """A body on its terms. Who asks makes a class of it that is told the answer.

    Attributes
    ----------
    tenant_id
        Whose calibration is asked.
    timeout
        Seconds until there must be an answer; no longer than the terms say.
    rows
        What its rows are counted against; None where they may be any number.
    rows_window
        The window of that limit in which they were counted.
    set_content
        A set as it was sent; ``body`` then has its rows.
    is_told
        Whether it was told its end, or was dropped.
    """

    tenant_id: uuid.UUID
    terms: PredictionOptions
    timeout: float
    rows: RateLimit | None = None
    rows_window: int = 0
    served: ServedCalibration | None = None
    batcher: Batcher | None = None
    task: "asyncio.Task[None] | None" = None
    set_content: bytes | None = None
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

"""A prediction request, its options, its answer and an estimate of its rows."""

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

# Weight of the last request in the estimate.
SHARE = 0.2
# Bytes of JSON per byte of a number, at least.
JSON_FACTOR = 2


def estimate_rows(model: ServedModel, media_type: str, n_bytes: int) -> int:
    """Estimate the rows of a body from its length; at least 1."""
    known = model.bytes_a_row.get(media_type)
    if known is None:
        known = float(model.row_bytes * (JSON_FACTOR if media_type == JSON else 1))
    return round(n_bytes / known) or 1


def learn_rows(model: ServedModel, media_type: str, n_bytes: int, n_rows: int) -> None:
    """Improve the estimate with the actual rows of a body."""
    found = n_bytes / n_rows
    known = model.bytes_a_row.get(media_type, found)
    model.bytes_a_row[media_type] = known + SHARE * (found - known)


# In answers to rows without the column names that the calibration has.
POSITIONAL = "positional"

AnswerForm: TypeAlias = Literal["json", "npz", "oip"]


class PredictionOptions(msgspec.Struct, eq=False, frozen=True):
    """The options of a request beside its body; requests with equal heads share one object.

    Attributes
    ----------
    media_type
        One of `service.child.requests.media_types.BODIES`, or ``oip``.
    reference
        The calibration; None if the body names it.
    form
        The format of the answer.
    timeout
        Seconds until the deadline.
    """

    media_type: str
    reference: str | None
    form: AnswerForm
    timeout: float
    encoding: str = "identity"
    header_length: str | None = None


class PredictionAnswer(msgspec.Struct, eq=False):
    """A response body, and the length of its JSON if tensors follow.

    ``by_position`` tells that rows came without the column names that the calibration has.
    """

    ref: CalibrationRef
    body: bytes
    header_length: int | None = None
    by_position: bool = False


class PredictionRequest(BatchRequest, eq=False, kw_only=True):
    """A request and its state. Subclasses pass on the answer.

    Attributes
    ----------
    tenant_id
        The tenant of the calibration.
    timeout
        Seconds until the deadline, at most that of the options.
    rows
        The rate limit of the tenant's rows; None without a limit.
    rows_window
        The window of that limit that counted the rows.
    set_content
        The original bytes of a set; ``body`` then holds its rows.
    is_settled
        Whether it was answered, failed or dropped.
    """

    tenant_id: uuid.UUID
    options: PredictionOptions
    timeout: float
    rows: RateLimit | None = None
    rows_window: int = 0
    served: ServedCalibration | None = None
    batcher: Batcher | None = None
    task: "asyncio.Task[None] | None" = None
    set_content: bytes | None = None
    is_settled: bool = False

    def done(self, answer: PredictionAnswer) -> None:
        """Pass the answer on."""
        raise NotImplementedError

    def failed(self, error: Exception) -> None:
        """Pass on the reason of a failure; anything but a `ServiceError` is a bug."""
        raise NotImplementedError

    def answer(self, answer: PredictionAnswer) -> None:
        """Answer the request, once."""
        if not self.is_settled:
            self.is_settled = True
            self.done(answer)

    def fail(self, error: Exception) -> None:
        """Fail the request, once."""
        if not self.is_settled:
            self.is_settled = True
            self.failed(error)

    def drop(self) -> None:
        """Drop the request: the client left."""
        self.is_settled = True
        if self.task is not None:
            self.task.cancel()
        if self.batcher is not None:
            self.batcher.drop(self)

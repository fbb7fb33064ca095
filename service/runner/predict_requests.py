"""Requests for predictions: their batches, and how answers are assigned to them."""

import asyncio
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Protocol

import msgspec

from service.errors import ServiceError
from service.runner.messages.convert import FieldError
from service.runner.messages.failures import error_of
from service.runner.messages.frames import DTYPES, Buffer
from service.runner.messages.open_inference import RequestedOutputs
from service.runner.messages.predict_batches import (
    Batch,
    BatchResult,
    ResponseHead,
    RowRange,
    SentBodies,
    SuppliedColumn,
    Words,
    encode_batch,
)
from service.runner.model_output import OutputMatrix, OutputSpec


class QueueShare:
    """A tenant's share of the queue: rows that wait, bytes of requests, bytes being received."""

    __slots__ = ("bytes", "receiving", "rows")

    def __init__(self) -> None:
        self.rows = 0
        self.bytes = 0
        self.receiving = 0


class Asker(Protocol):
    """Receives the results of requests, except dropped ones."""

    def answered(self, answers: "Sequence[Answer]") -> None:
        """Take the answers of one run."""

    def failed(self, request: Any, error: ServiceError) -> None:  # noqa: ANN401 - the asker's own class
        """Take the error of a request."""


class BodyKind(msgspec.Struct, eq=False, frozen=True):
    """The format of a body. A child can read several bodies of one format and length at once.

    ``media_type`` is one of `service.child.requests.media_types.BODIES`, or ``oip``;
    ``reference`` is the calibration's.
    """

    media_type: str
    reference: str
    header_length: str | None = None


# One object for each kind: kinds are compared by identity.
body_kind = lru_cache(maxsize=1024)(BodyKind)


class BatchRequest(msgspec.Struct, eq=False, kw_only=True):
    """A request body as it was sent, and the state of the request.

    Askers derive a class with what they need to pass the answer on. There is only one object for
    each request, since further ones are expensive.

    Attributes
    ----------
    kind
        Set before the request enters a queue.
    n_rows
        An estimate, for the limits of the queue.
    arrived, due
        The event loop's time.
    is_over
        Whether the request has a result, or was dropped.
    share
        The tenant's share of the queue, if tenants share it.
    """

    asker: Asker
    body: bytes
    arrived: float
    kind: BodyKind = BodyKind("", "")
    n_rows: int = 1
    number: int = 0
    is_over: bool = False
    head: ResponseHead | None = None
    parts: list[OutputMatrix] | None = None
    rows_had: int = 0
    deadline: asyncio.TimerHandle | None = None
    due: float = math.inf
    share: QueueShare | None = None

    def finish(self) -> bool:
        """Mark the request as over; return whether it was not before."""
        was_over, self.is_over = self.is_over, True
        if self.deadline is not None:
            self.deadline.cancel()
            self.deadline = None
        return not was_over


class Answer(msgspec.Struct, eq=False):
    """Rows ``start`` to ``stop`` of ``matrix`` answer the request.

    ``by_position`` tells that they came without the column names that the calibration has.
    The request is of the asker's own class of `BatchRequest`.
    """

    request: Any
    matrix: OutputMatrix
    start: int
    stop: int
    wanted: RequestedOutputs | None
    supplied: Mapping[str, SuppliedColumn]
    by_position: bool = False


# The size of a result beside its matrix: a fixed part, one failure or response head for each
# request, and the bytes of supplied numbers, which the body may write in two characters each.
RESULT_BYTES = 2**16
RESULT_REQUEST_BYTES = 24 * 2**10
RESULT_FACTOR = 4


@dataclass(frozen=True)
class BatchLimits:
    """Limits of a request and of a run; ``run_seconds`` limits the time of one run."""

    max_rows: int
    max_bytes: int
    run_rows: int
    run_seconds: float


def batch_seconds(spec: OutputSpec, limits: BatchLimits) -> float:
    """Return the time that a child may take for a batch."""
    return limits.run_seconds * spec.runs


def encode_requests(
    requests: Sequence[BatchRequest],
    dropped: list[int],
    spec: OutputSpec,
    limits: BatchLimits,
    *,
    sequence: int,
) -> list[Buffer]:
    """Return the frame of new requests, without copying their bodies.

    ``dropped`` are the numbers of earlier requests that were dropped.
    """
    batch = Batch(
        sent=_alike_together(requests),
        dropped=dropped,
        max_rows=limits.max_rows,
        max_bytes=limits.max_bytes,
        run_rows=limits.run_rows,
        each_run=limits.run_seconds * spec.largest_run,
    )
    budget_ms = int(batch_seconds(spec, limits) * 1000)
    bodies = [request.body for request in requests]
    return encode_batch(batch, bodies, sequence=sequence, budget_ms=budget_ms)


def most_result_bytes(sent: Iterable[BatchRequest]) -> int:
    """Return the largest valid size of these requests' result, beside its matrix."""
    most = RESULT_BYTES
    for request in sent:
        most += RESULT_REQUEST_BYTES + RESULT_FACTOR * len(request.body)
    return most


def _alike_together(requests: Sequence[BatchRequest]) -> list[SentBodies]:
    """Return one entry for each run of consecutive requests with one format and length."""
    found: list[SentBodies] = []
    at = 0
    while at < len(requests):
        first, begins = requests[at], at
        kind, length, number = first.kind, len(first.body), first.number
        while at < len(requests):
            request = requests[at]
            if (
                request.kind is not kind
                or len(request.body) != length
                or request.number != number + at - begins
            ):
                break
            at += 1
        found.append(
            SentBodies(
                number,
                kind.media_type,
                length,
                kind.reference,
                header_length=kind.header_length,
                count=at - begins,
            )
        )
    return found


@dataclass(frozen=True, eq=False)
class BatchResponse:
    """A child's result and its matrix; only their sizes have been checked."""

    result: BatchResult
    words: Words

    @property
    def n_rows(self) -> int:
        """Number of rows of the run."""
        return len(self.words)

    @property
    def rows_left(self) -> int:
        """Number of rows that the child still has."""
        return self.result.waiting

    def assign(
        self, sent: dict[int, BatchRequest], spec: OutputSpec, *, max_rows: int
    ) -> tuple[list[Answer], list[tuple[BatchRequest, ServiceError]]]:
        """Return complete answers and failures; both are removed from ``sent``.

        Raises
        ------
        FieldError
            If a number belongs to no request, there are too many or too few rows, or a value of
            the matrix breaks a rule. All requests are still in ``sent`` then.
        """
        answers: list[Answer] = []
        refused: list[tuple[BatchRequest, ServiceError]] = []
        try:
            self._assign_rows(sent, spec, max_rows, answers)
            for failed in self.result.failures:
                error = error_of(msgspec.structs.asdict(failed))
                refused.append((_of(sent, failed.number), error))
                del sent[failed.number]
            self._check_rest(sent)
        except FieldError:
            sent.update((answer.request.number, answer.request) for answer in answers)
            sent.update((request.number, request) for request, _ in refused)
            raise
        return answers, refused

    def _assign_rows(
        self,
        sent: dict[int, BatchRequest],
        spec: OutputSpec,
        max_rows: int,
        answers: list[Answer],
    ) -> None:
        if not self.result.ranges:
            return
        matrix = spec.read_words(self.words)
        start = 0
        for part in self.result.ranges:
            begun, rows = part.head, part.rows
            if begun is not None and begun.supplied:
                _check_supplied(begun)
            is_whole = begun is not None and begun.rows == rows <= max_rows
            for number in range(part.number, part.number + part.count):
                request = _of(sent, number)
                answer: Answer | None
                if begun is not None and is_whole and request.head is None:
                    stop = start + rows
                    wanted, supplied, by_position = begun.wanted, begun.supplied, begun.by_position
                    answer = Answer(request, matrix, start, stop, wanted, supplied, by_position)
                else:
                    answer = _take(request, part, matrix, start, max_rows)
                if answer is not None:
                    del sent[number]
                    answers.append(answer)
                start += rows

    def _check_rest(self, sent: Mapping[int, BatchRequest]) -> None:
        """Refuse a result that omits requests, or makes no progress with them."""
        if self.rows_left < 0 or bool(sent) != bool(self.rows_left):
            raise FieldError("the result omits a request")
        if sent and not self.result.ranges and not self.result.failures:
            raise FieldError("the child makes no progress")


def _of(sent: Mapping[int, BatchRequest], number: int) -> BatchRequest:
    if number not in sent:
        raise FieldError("an answer to an unknown request")
    return sent[number]


def _take(
    request: BatchRequest, part: RowRange, matrix: OutputMatrix, start: int, max_rows: int
) -> Answer | None:
    """Add rows to a request; return its answer if they complete it."""
    if (part.head is None) == (request.head is None):
        raise FieldError("rows in the wrong order")
    begun = request.head = part.head or request.head
    if begun is None or begun.rows > max_rows or request.rows_had + part.rows > begun.rows:
        raise FieldError("too many rows")
    request.rows_had += part.rows
    if request.parts is None:
        request.parts = []
    request.parts.append(matrix.rows(start, start + part.rows))
    if request.rows_had != begun.rows:
        return None
    joined = OutputMatrix.joined(request.parts)
    return Answer(request, joined, 0, begun.rows, begun.wanted, begun.supplied, begun.by_position)


def _check_supplied(begun: ResponseHead) -> None:
    for column in begun.supplied.values():
        dtype = DTYPES.get(column.dtype)
        if dtype is None or column.shape != [begun.rows]:
            raise FieldError("the type or shape of a supplied uncertainty")
        if len(column.data) != begun.rows * dtype.itemsize:
            raise FieldError("the size of a supplied uncertainty")

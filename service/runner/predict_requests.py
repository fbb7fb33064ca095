"""Requests for predictions: their batches, and how answers are assigned to them."""

import asyncio
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby
from typing import Any, Protocol
from uuid import UUID

import msgspec

from service.errors import InvalidInput, ServiceError
from service.runner.messages.convert import FieldError
from service.runner.messages.failures import error_of, raise_failure
from service.runner.messages.frames import (
    SMALL_FIELDS_BYTES,
    Buffer,
    FrameError,
    Header,
    Status,
    parse_body,
)
from service.runner.messages.predict_batches import (
    Batch,
    ResponseHead,
    RowRange,
    SentBodies,
    decode_result,
    encode_batch,
)
from service.runner.model_output import OutputMatrix, OutputSpec


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
    holder
        The tenant, if tenants share the queue.
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
    holder: UUID | None = None

    def finish(self) -> bool:
        """Mark the request as over; return whether it was not before."""
        was_over, self.is_over = self.is_over, True
        if self.deadline is not None:
            self.deadline.cancel()
            self.deadline = None
        return not was_over


class Answer(msgspec.Struct, eq=False):
    """Rows ``start`` to ``stop`` of ``matrix`` answer the request.

    The request is of the asker's own class of `BatchRequest`.
    """

    request: Any
    matrix: OutputMatrix
    start: int
    stop: int
    head: ResponseHead


# The size of a result beside its matrix: a fixed part, and one failure or response head for each
# request that is new or has rows in the run.
RESULT_BYTES = 2**16
RESULT_REQUEST_BYTES = 24 * 2**10


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


def most_result_bytes(n_sent: int, n_new: int, run_rows: int) -> int:
    """Return the largest valid size of a result, beside its matrix, by numbers of requests."""
    return RESULT_BYTES + RESULT_REQUEST_BYTES * min(n_sent, n_new + run_rows)


def _alike_together(requests: Sequence[BatchRequest]) -> list[SentBodies]:
    """Return one entry for each run of consecutive requests with one format and length."""
    alike = groupby(
        enumerate(requests), lambda at: (at[1].kind, len(at[1].body), at[1].number - at[0])
    )
    sent: list[SentBodies] = []
    for (kind, length, _), group in alike:
        numbers = [request.number for _, request in group]
        form = kind.media_type, length, kind.reference, kind.header_length
        sent.append(SentBodies(numbers[0], *form, count=len(numbers)))
    return sent


@dataclass(frozen=True, eq=False)
class BatchResponse:
    """A child's result, whose values have been checked, but not the requests it is for.

    ``rows_left`` is the number of rows that the child still has.
    """

    ranges: Sequence[RowRange]
    failures: Sequence[tuple[int, ServiceError]]
    rows_left: int
    matrix: OutputMatrix

    def assign(
        self, sent: dict[int, BatchRequest], *, max_rows: int
    ) -> tuple[list[Answer], list[tuple[BatchRequest, ServiceError]]]:
        """Return complete answers and failures; both are removed from ``sent``.

        Raises
        ------
        FieldError
            If a number belongs to no request, or there are too many or too few rows. All requests
            are still in ``sent`` then.
        """
        answers: list[Answer] = []
        refused: list[tuple[BatchRequest, ServiceError]] = []
        try:
            self._assign_rows(sent, max_rows, answers)
            for number, error in self.failures:
                refused.append((_of(sent, number), error))
                del sent[number]
            self._check_rest(sent)
        except FieldError:
            sent.update((answer.request.number, answer.request) for answer in answers)
            sent.update((request.number, request) for request, _ in refused)
            raise
        return answers, refused

    def _assign_rows(
        self,
        sent: dict[int, BatchRequest],
        max_rows: int,
        answers: list[Answer],
    ) -> None:
        matrix, start = self.matrix, 0
        for part in self.ranges:
            begun, rows = part.head, part.rows
            is_whole = begun is not None and begun.rows == rows <= max_rows
            for number in range(part.number, part.number + part.count):
                request = _of(sent, number)
                answer: Answer | None
                if begun is not None and is_whole and request.head is None:
                    answer = Answer(request, matrix, start, start + rows, begun)
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
        if sent and not self.ranges and not self.failures:
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
    return Answer(request, joined, 0, begun.rows, begun)


def read_response(
    header: Header, fields: Buffer, payload: Buffer, spec: OutputSpec
) -> BatchResponse:
    """Return the response of a frame; calls may run on any thread.

    Raises
    ------
    ServiceError
        The failure of the whole batch that the child reports.
    FrameError, FieldError
        If the bytes are no result, or a value breaks a rule.
    """
    if header.status is Status.FAILED:
        if len(fields) + len(payload) > SMALL_FIELDS_BYTES:
            raise FrameError("a failure of too many bytes")
        raise_failure(parse_body(header, fields, payload), invalid=InvalidInput)
    result, words = decode_result(header, fields, payload, spec.n_words)
    failures = [(failed.number, error_of(failed.failure)) for failed in result.failures]
    return BatchResponse(result.ranges, failures, result.waiting, spec.read_words(words))

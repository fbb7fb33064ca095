"""What one of several who share the room for predictions holds of it."""

import asyncio
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Protocol

import msgspec

from service.errors import ServiceError
from service.runner.messages.frames import DTYPES, Buffer
from service.runner.messages.onnx_models import FieldError
from service.runner.messages.open_inference import Wanted
from service.runner.messages.predict_batches import (
    Batch,
    Beginning,
    Part,
    Report,
    Sent,
    SuppliedColumn,
    Words,
    encode_batch,
)
from service.runner.model_output import Expected, HeadMatrix, failure_of


class QueueShare:
    """Rows that wait, bytes of requests that are held, and bytes that are being received."""

    __slots__ = ("bytes", "receiving", "rows")

    def __init__(self) -> None:
        self.rows = 0
        self.bytes = 0
        self.receiving = 0


class Asker(Protocol):
    """Who is told what became of requests; never of one that was dropped."""

    def answered(self, answers: "Sequence[Answer]") -> None:
        """Take what one run answered."""

    def failed(self, request: Any, error: ServiceError) -> None:  # noqa: ANN401 - its own kind
        """Take the reason why there is no answer to a request of the asker's own kind."""


class BodyKind(msgspec.Struct, eq=False, frozen=True):
    """What bodies have in common that a child reads as one if their lengths are alike.

    ``media_type`` is one of `service.child.requests.media_types.BODIES`, or ``oip``;
    ``reference`` is the calibration's.
    """

    media_type: str
    reference: str
    header_length: str | None = None


# One object a kind: requests are held against each other by identity.
body_kind = lru_cache(maxsize=1024)(BodyKind)


class BatchRequest(msgspec.Struct, eq=False, kw_only=True):
    """A body as it was sent, and what is known of it before it is read.

    Who asks makes a class of it with what is needed to pass the answer on. There is one object for
    a request, all the way: each further one costs more than what it is for.

    Attributes
    ----------
    kind
        Set before the request is put in a queue.
    n_rows
        An estimate, for the bounds of the queue.
    arrived, due
        The event loop's time.
    is_over
        Whether nobody waits for the model any more.
    share
        Of who asks, where several share the queue.
    """

    asker: Asker
    body: bytes
    arrived: float
    kind: BodyKind = BodyKind("", "")
    n_rows: int = 1
    number: int = 0
    is_over: bool = False
    began: float = 0.0
    beginning: Beginning | None = None
    parts: list[HeadMatrix] | None = None
    rows_had: int = 0
    deadline: asyncio.TimerHandle | None = None
    due: float = math.inf
    share: QueueShare | None = None

    def finish(self) -> bool:
        """Say that nobody waits any more; tell whether somebody did."""
        was_over, self.is_over = self.is_over, True
        if self.deadline is not None:
            self.deadline.cancel()
            self.deadline = None
        return not was_over

    def renew(self) -> None:
        """Make one that failed ready to be put in a queue once more."""
        self.is_over = False
        self.beginning = self.parts = None
        self.rows_had = 0
        self.due = math.inf


class Answer(msgspec.Struct, eq=False):
    """Rows ``start`` to ``stop`` of ``matrix`` answer the request; the others are of others.

    The request is of the asker's own kind of `BatchRequest`.
    """

    request: Any
    matrix: HeadMatrix
    start: int
    stop: int
    wanted: Wanted | None
    supplied: Mapping[str, SuppliedColumn]


# What a report may hold beside its matrix: this much, for each request a refusal or what it wants
# back, and what a number that was written in two characters takes.
REPORT_BYTES = 2**16
REPORT_REQUEST_BYTES = 24 * 2**10
REPORT_FACTOR = 4


@dataclass(frozen=True)
class BatchLimits:
    """What goes into a run, and into a request; ``run_seconds`` is what a run may take."""

    max_rows: int
    max_bytes: int
    run_rows: int
    run_seconds: float


def batch_seconds(expected: Expected, limits: BatchLimits) -> float:
    """Return what a child may take for a batch."""
    return limits.run_seconds * expected.runs


def asked_batch(
    requests: Sequence[BatchRequest],
    dropped: list[int],
    expected: Expected,
    limits: BatchLimits,
    *,
    sequence: int,
) -> list[Buffer]:
    """Return the frame that asks for new requests; no body is copied.

    ``dropped`` are the numbers of earlier ones that nobody waits for any more.
    """
    batch = Batch(
        sent=_alike_together(requests),
        dropped=dropped,
        max_rows=limits.max_rows,
        max_bytes=limits.max_bytes,
        run_rows=limits.run_rows,
        each_run=limits.run_seconds * expected.largest_run,
    )
    budget_ms = int(batch_seconds(expected, limits) * 1000)
    bodies = [request.body for request in requests]
    return encode_batch(batch, bodies, sequence=sequence, budget_ms=budget_ms)


def most_report_bytes(sent: Iterable[BatchRequest]) -> int:
    """Return the bytes beside its matrix that an honest report of these may have."""
    most = REPORT_BYTES
    for request in sent:
        most += REPORT_REQUEST_BYTES + REPORT_FACTOR * len(request.body)
    return most


def _alike_together(requests: Sequence[BatchRequest]) -> list[Sent]:
    """Return what is said of requests, once for those that follow each other and are alike."""
    found: list[Sent] = []
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
            Sent(
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
class ReportedBatch:
    """A report and its matrix, of which nothing but the sizes has been checked."""

    report: Report
    words: Words

    @property
    def n_rows(self) -> int:
        """How many rows were run."""
        return len(self.words)

    @property
    def rows_left(self) -> int:
        """How many rows the child still has."""
        return self.report.waiting

    def match(
        self, sent: dict[int, BatchRequest], expected: Expected, *, max_rows: int
    ) -> tuple[list[Answer], list[tuple[BatchRequest, ServiceError]]]:
        """Return the answers that are whole, and the refusals; both are taken out of ``sent``.

        Raises
        ------
        FieldError
            If a number is not that of a request, rows are too many or too few, or the matrix
            holds what cannot be. All requests are still in ``sent`` then.
        """
        answers: list[Answer] = []
        refused: list[tuple[BatchRequest, ServiceError]] = []
        try:
            self._match_parts(sent, expected, max_rows, answers)
            for failed in self.report.refused:
                error = failure_of(failed.code, failed.message, failed.violations)
                refused.append((_of(sent, failed.number), error))
                del sent[failed.number]
            self._check_rest(sent)
        except FieldError:
            sent.update((answer.request.number, answer.request) for answer in answers)
            sent.update((request.number, request) for request, _ in refused)
            raise
        return answers, refused

    def _match_parts(
        self,
        sent: dict[int, BatchRequest],
        expected: Expected,
        max_rows: int,
        answers: list[Answer],
    ) -> None:
        if not self.report.parts:
            return
        matrix = expected.read_words(self.words)
        start = 0
        for part in self.report.parts:
            begun, rows = part.beginning, part.rows
            if begun is not None and begun.supplied:
                _check_supplied(begun)
            is_whole = begun is not None and begun.rows == rows <= max_rows
            for number in range(part.number, part.number + part.count):
                request = _of(sent, number)
                answer: Answer | None
                if begun is not None and is_whole and request.beginning is None:
                    stop = start + rows
                    answer = Answer(request, matrix, start, stop, begun.wanted, begun.supplied)
                else:
                    answer = _take(request, part, matrix, start, max_rows)
                if answer is not None:
                    del sent[number]
                    answers.append(answer)
                start += rows

    def _check_rest(self, sent: Mapping[int, BatchRequest]) -> None:
        """Refuse a child that forgets requests, or that would be asked about them for ever."""
        if self.rows_left < 0 or bool(sent) != bool(self.rows_left):
            raise FieldError("a request that was forgotten")
        if sent and not self.report.parts and not self.report.refused:
            raise FieldError("no progress with what it has")


def _of(sent: Mapping[int, BatchRequest], number: int) -> BatchRequest:
    if number not in sent:
        raise FieldError("an answer that nobody asked for")
    return sent[number]


def _take(
    request: BatchRequest, part: Part, matrix: HeadMatrix, start: int, max_rows: int
) -> Answer | None:
    """Add rows to what a request has; return its answer if these were the last."""
    if (part.beginning is None) == (request.beginning is None):
        raise FieldError("a part out of turn")
    begun = request.beginning = part.beginning or request.beginning
    if begun is None or begun.rows > max_rows or request.rows_had + part.rows > begun.rows:
        raise FieldError("more rows than there are")
    request.rows_had += part.rows
    if request.parts is None:
        request.parts = []
    request.parts.append(matrix.rows(start, start + part.rows))
    if request.rows_had != begun.rows:
        return None
    joined = HeadMatrix.joined(request.parts)
    return Answer(request, joined, 0, begun.rows, begun.wanted, begun.supplied)


def _check_supplied(begun: Beginning) -> None:
    for column in begun.supplied.values():
        dtype = DTYPES.get(column.dtype)
        if dtype is None or column.shape != [begun.rows]:
            raise FieldError("a supplied uncertainty of another kind")
        if len(column.data) != begun.rows * dtype.itemsize:
            raise FieldError("a supplied uncertainty of another size")

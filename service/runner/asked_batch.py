"""What a child is asked with one batch."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from service.runner.answers import Expected
from service.runner.batch_messages import Batch, Sent, encode_batch
from service.runner.batch_request import BatchRequest
from service.runner.frames import Buffer

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

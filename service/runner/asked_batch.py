"""What a child is asked with one batch."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

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


class AskedBatch:
    """New requests, and the numbers of earlier ones that nobody waits for any more.

    Attributes
    ----------
    seconds
        What the child may take.
    """

    def __init__(
        self,
        requests: Sequence[BatchRequest],
        dropped: list[int],
        expected: Expected,
        limits: BatchLimits,
    ) -> None:
        self.seconds = limits.run_seconds * expected.runs
        self._bodies = [request.body for request in requests]
        self._batch = Batch(
            sent=list(_alike_together(requests)),
            dropped=dropped,
            max_rows=limits.max_rows,
            max_bytes=limits.max_bytes,
            run_rows=limits.run_rows,
            each_run=limits.run_seconds * expected.largest_run,
        )

    def frame(self, sequence: int) -> list[Buffer]:
        """Return the frame that asks it; no body is copied."""
        return encode_batch(
            self._batch, self._bodies, sequence=sequence, budget_ms=int(self.seconds * 1000)
        )


def most_report_bytes(sent: Iterable[BatchRequest]) -> int:
    """Return the bytes beside its matrix that an honest report of these may have."""
    each = REPORT_REQUEST_BYTES
    return REPORT_BYTES + sum(each + REPORT_FACTOR * len(request.body) for request in sent)


def _alike_together(requests: Sequence[BatchRequest]) -> Iterator[Sent]:
    """Yield what is said of requests once for those that follow each other and are alike."""
    kinds = (
        ((r.media_type, len(r.body), r.reference, r.encoding, r.header_length), r.number)
        for r in requests
    )
    for (kind, _), found in groupby(enumerate(kinds), key=lambda at: (at[1][0], at[1][1] - at[0])):
        numbers = [number for _, (_, number) in found]
        media_type, length, reference, encoding, header_length = kind
        yield Sent(numbers[0], media_type, length, reference, encoding, header_length, len(numbers))

"""One request that waits for its turn at a model, and its answer."""

import asyncio
import math
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, Protocol

import msgspec

from service.bodies.oip.wanted import Wanted
from service.errors import ServiceError
from service.runner.batch_messages import Beginning, SuppliedColumn
from service.runner.head_matrix import HeadMatrix
from service.runner.queue_share import QueueShare


class Asker(Protocol):
    """Who is told what became of requests; never of one that was dropped."""

    def answered(self, answers: "Sequence[Answer]") -> None:
        """Take what one run answered."""

    def failed(self, request: Any, error: ServiceError) -> None:  # noqa: ANN401 - its own kind
        """Take the reason why there is no answer to a request of the asker's own kind."""


class BodyKind(msgspec.Struct, eq=False, frozen=True):
    """What bodies have in common that a child reads as one if their lengths are alike.

    ``media_type`` is one of `service.bodies.BODIES`, or ``oip``; ``reference`` the calibration's.
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

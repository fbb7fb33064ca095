"""One request that waits for its turn at a model, and its answer."""

import asyncio
import math
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import msgspec

from service.bodies.oip.wanted import Wanted
from service.errors import ServiceError
from service.runner.batch_messages import Beginning, SuppliedColumn
from service.runner.description import HeadOutputs


class Asker(Protocol):
    """Who is told what became of requests; never of one that was dropped."""

    def answered(self, answers: "Sequence[Answer]") -> None:
        """Take what one run answered."""

    def failed(self, request: "BatchRequest", error: ServiceError) -> None:
        """Take the reason why there is no answer."""


class BatchRequest(msgspec.Struct, eq=False):
    """A body as it was sent, and what is known of it before it is read.

    It and what else there is one of for each request are made in a fraction of the time that
    dataclasses take.

    Attributes
    ----------
    context
        The asker's own.
    media_type
        One of `service.bodies.BODIES`, or ``oip``.
    n_rows
        An estimate, for the bounds of the queue.
    arrived, due
        The event loop's time.
    """

    asker: Asker
    context: Any
    media_type: str
    body: bytes
    reference: str
    arrived: float
    n_rows: int = 1
    encoding: str = "identity"
    header_length: str | None = None
    number: int = 0
    is_over: bool = False
    began: float = 0.0
    beginning: Beginning | None = None
    parts: list[HeadOutputs] = []
    rows_had: int = 0
    deadline: asyncio.TimerHandle | None = None
    due: float = math.inf

    def finish(self) -> bool:
        """Say that nobody waits any more; tell whether somebody did."""
        was_over, self.is_over = self.is_over, True
        if self.deadline is not None:
            self.deadline.cancel()
            self.deadline = None
        return not was_over


class Answer(msgspec.Struct, eq=False):
    """Rows ``start`` to ``stop`` of ``outputs`` answer the request; the others are of others."""

    request: BatchRequest
    outputs: HeadOutputs
    start: int
    stop: int
    wanted: Wanted | None
    supplied: Mapping[str, SuppliedColumn]

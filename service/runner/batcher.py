"""The request queue of one model: the next run takes what waits when a run ends."""

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass

from service.errors import DeadlineExceeded, ServiceError
from service.runner.child_connection import LoadedChild
from service.runner.messages.convert import FieldError
from service.runner.model_output import OutputSpec
from service.runner.predict_requests import (
    Answer,
    BatchLimits,
    BatchRequest,
    BatchResponse,
    batch_seconds,
    encode_requests,
    most_result_bytes,
)
from service.runner.queue_bounds import QueueBounds

MAX_REQUESTS = 256
MAX_SENT_BYTES = 8 * 2**20
# Longer timeouts are checked every `SWEEP_SECONDS`.
SWEPT_SECONDS = 5.0
SWEEP_SECONDS = 0.5
OVERDUE = "The request {} for longer than its timeout."


@dataclass(eq=False, repr=False)
class Batcher:
    """Sends one batch at a time to a child, without a timer.

    Requests that arrive in one turn of the event loop form a batch; those that arrive while the
    child runs form its next batch. All calls are made on the event loop.

    Parameters
    ----------
    bounds
        Limits of the queue, shared by all models.
    open_child
        Called when a request waits and no child has the model; `opened` or `not_opened` follows.
    idle
        Called when no request is left.
    ended
        Receives the error that ended the child; returns the reason for a quarantine, if any.
    ran
        Receives the number of rows of each run, and the seconds it took.
    """

    spec: OutputSpec
    _: KW_ONLY
    limits: BatchLimits
    bounds: QueueBounds
    open_child: Callable[["Batcher"], None]
    idle: Callable[["Batcher"], None]
    ended: Callable[[ServiceError], ServiceError | None]
    ran: Callable[[int, float], None]

    def __post_init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._asked_at = 0.0
        self._waiting: deque[BatchRequest] = deque()
        self._sent: dict[int, BatchRequest] = {}
        self._asked: list[BatchRequest] = []
        self._dropped: list[int] = []
        self.child: LoadedChild | None = None
        self._is_opening = False
        self._is_busy = False
        self._is_flush_due = False
        self.is_evicted = False
        self._left_in_child = 0
        self._next_number = 1
        self._sweeping: asyncio.TimerHandle | None = None

    @property
    def is_idle(self) -> bool:
        """Whether there is no request, and no child is being opened."""
        return not (self._waiting or self._sent or self._is_opening or self._is_busy)

    def pending(self) -> int:
        """Return the number of requests that wait for a run."""
        return len(self._waiting)

    def running(self) -> int:
        """Return the number of requests that the child is processing."""
        return len(self._sent)

    def submit(self, request: BatchRequest, *, timeout: float, now: float) -> None:
        """Put a request in the queue; ``now`` is the event loop's time.

        Raises
        ------
        TooManyRequests
            If the queue is full.
        DeadlineExceeded
            If the timeout is 0.
        """
        if timeout <= 0:
            raise DeadlineExceeded(OVERDUE.format("waited"))
        self.bounds.enter(request)
        request.number = self._next_number
        self._next_number += 1
        if timeout < SWEPT_SECONDS:
            request.deadline = self._loop.call_later(timeout, self._overdue, request)
        else:
            # A periodic sweep costs less than a timer for each request.
            request.due = now + timeout
            if self._sweeping is None:
                self._sweeping = self._loop.call_later(SWEEP_SECONDS, self._sweep)
        self._waiting.append(request)
        if not (self._is_flush_due or self._is_busy):
            self._go_on()

    def drop(self, request: BatchRequest) -> None:
        """Drop a request whose client has left."""
        if request.finish():
            self.bounds.end(request)
            self._let_go(request)

    def opened(self, child: LoadedChild) -> None:
        """Use a child that has loaded the model."""
        self._is_opening = False
        self.child = child
        child.attach(self._take_result, self._lost)
        self._go_on()

    def not_opened(self, error: ServiceError) -> None:
        """Fail all waiting requests, since the model did not load."""
        self._is_opening = False
        for request in self._take_all():
            self._fail(request, error)
        self.idle(self)

    def unload(self) -> LoadedChild | None:
        """Detach the child, which the caller closes; requests keep waiting."""
        child, self.child = self.child, None
        self.is_evicted = False
        if child is not None:
            child.detach()
        return child

    def evict(self) -> None:
        """Start no more requests, so that the child can be unloaded after its run."""
        self.is_evicted = True

    def stop_run(self, error: ServiceError) -> LoadedChild | None:
        """Fail the requests that the child has, and detach it; waiting requests stay."""
        self._fail_sent(error)
        return self.unload()

    def resume(self) -> None:
        """Continue with the waiting requests, in a new child if this one was unloaded."""
        self.is_evicted = False
        if self._waiting:
            # Later: the caller looks for room for another model first.
            self._loop.call_soon(self._go_on)

    @property
    def can_be_unloaded(self) -> bool:
        """Whether the child of an evicted model has finished its run."""
        return self.is_evicted and not (self._sent or self._is_busy or self._is_opening)

    def close(self, error: ServiceError) -> LoadedChild | None:
        """Fail all requests and detach the child."""
        for request in self._take_all():
            self._fail(request, error)
        self._fail_sent(error)
        return self.unload()

    def _go_on(self) -> None:
        if self.child is None:
            if self._waiting and not self._is_opening:
                self._is_opening = True
                self.open_child(self)
        elif not self._is_busy and not self._is_flush_due:
            # Later: the other requests of this turn of the loop join the batch.
            self._is_flush_due = True
            self._loop.call_soon(self._flush)

    def _flush(self) -> None:
        self._is_flush_due = False
        child = self.child
        if child is None or self._is_busy:
            self._go_on()
            return
        requests = self._next_requests()
        if not requests and not self._left_in_child and not self._dropped:
            if self.is_idle or self.can_be_unloaded:
                self.idle(self)
            return
        dropped, self._dropped = self._dropped, []
        for number in dropped:
            self._sent.pop(number, None)
        self._is_busy = True
        self._asked_at = self._loop.time()
        self._asked, run_rows = requests, self.limits.run_rows
        child.ask(
            encode_requests(
                requests, dropped, self.spec, self.limits, sequence=child.next_sequence()
            ),
            seconds=batch_seconds(self.spec, self.limits),
            max_result_bytes=most_result_bytes(len(self._sent), len(requests), run_rows),
            max_rows=run_rows,
        )

    def _take_back(self) -> None:
        """Return the last batch, which the child has not read, to the queue."""
        for request in reversed(self._asked):
            if self._sent.pop(request.number, None) is not None and not request.is_over:
                self._waiting.appendleft(request)
                self.bounds.come_back(request)

    def _next_requests(self) -> list[BatchRequest]:
        """Take the requests of the next batch: at least one, if one waits."""
        waiting, sent, now = self._waiting, self._sent, self._loop.time()
        taken: list[BatchRequest] = []
        if self.is_evicted:
            return taken
        n_rows, n_bytes = self._left_in_child, 0
        while waiting and len(taken) < MAX_REQUESTS:
            request = waiting[0]
            n_bytes += len(request.body)
            if taken and (n_rows >= self.limits.run_rows or n_bytes > MAX_SENT_BYTES):
                break
            waiting.popleft()
            n_rows += request.n_rows
            sent[request.number] = request
            taken.append(request)
        self.bounds.leave(taken, now)
        return taken

    def _take_result(self, response: BatchResponse) -> None:
        """Take a result of the child; send the next batch before passing on the answers."""
        self._is_busy, self._asked = False, []
        try:
            answers, refused = response.assign(self._sent, max_rows=self.limits.max_rows)
        except FieldError as error:
            if self.child is not None:
                self.child.refuse(str(error))
            return
        self._left_in_child = response.rows_left
        now = self._loop.time()
        n_rows = response.matrix.n_rows
        self.bounds.served(n_rows, now)
        self.ran(n_rows, now - self._asked_at)
        self._flush()
        self._tell(answers)
        for request, failure in refused:
            self._fail(request, failure)

    def _tell(self, answers: list[Answer]) -> None:
        by_asker: dict[int, list[Answer]] = {}
        for answer in answers:
            if answer.request.finish():
                self.bounds.end(answer.request)
                by_asker.setdefault(id(answer.request.asker), []).append(answer)
        for found in by_asker.values():
            found[0].request.asker.answered(found)

    def _lost(self, error: ServiceError, is_unread: bool) -> None:  # noqa: FBT001 - a callback
        """Fail the requests of a child that ended; the others keep waiting."""
        self.child, self.is_evicted = None, False
        if is_unread:
            self._take_back()
        self._fail_sent(error)
        reason = self.ended(error)
        if reason is not None:
            for request in self._take_all():
                self._fail(request, reason)
        self._go_on()
        if self.is_idle:
            self.idle(self)

    def _fail_sent(self, error: ServiceError) -> None:
        self._is_busy = False
        self._left_in_child = 0
        self._dropped = []
        sent, self._sent = self._sent, {}
        for request in sent.values():
            self._fail(request, error)

    def _fail(self, request: BatchRequest, error: ServiceError) -> None:
        if request.finish():
            self.bounds.end(request)
            request.asker.failed(request, error)

    def _take_all(self) -> list[BatchRequest]:
        now = self._loop.time()
        requests = list(self._waiting)
        self._waiting.clear()
        self.bounds.leave(requests, now)
        return requests

    def _let_go(self, request: BatchRequest) -> None:
        if request.number in self._sent:
            self._dropped.append(request.number)
            return
        self._waiting.remove(request)
        self.bounds.leave([request], self._loop.time())

    def _sweep(self) -> None:
        self._sweeping = None
        now = self._loop.time()
        there = [r for r in (*self._waiting, *self._sent.values()) if not r.is_over]
        for request in there:
            if request.due <= now:
                self._overdue(request)
        if there:
            self._sweeping = self._loop.call_later(SWEEP_SECONDS, self._sweep)

    def _overdue(self, request: BatchRequest) -> None:
        request.deadline = None
        waited = "ran" if request.number in self._sent else "waited"
        if request.finish():
            self.bounds.end(request)
            self._let_go(request)
            request.asker.failed(request, DeadlineExceeded(OVERDUE.format(waited)))

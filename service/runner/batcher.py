"""The queue of one model: all that waits when a run ends goes into the next one."""

import asyncio
from collections import deque
from collections.abc import Callable

from service.errors import DeadlineExceeded, ServiceError
from service.runner.child_connection import LoadedChild
from service.runner.messages.frames import FrameError
from service.runner.messages.onnx_models import FieldError
from service.runner.model_output import Expected
from service.runner.predict_requests import (
    Answer,
    BatchLimits,
    BatchRequest,
    ReportedBatch,
    asked_batch,
    batch_seconds,
    most_report_bytes,
)
from service.runner.queue_bounds import QueueBounds

MAX_REQUESTS = 256
MAX_SENT_BYTES = 8 * 2**20
# Longer times are looked at in such steps.
SWEPT_SECONDS = 5.0
SWEEP_SECONDS = 0.5
OVERDUE = "The request {} for longer than its timeout."


class Batcher:
    """Asks one child, a batch at a time; there is no timer.

    Requests that come in one turn of the event loop go together; those that come while the child
    is at work go together into its next batch. All calls are made on the event loop.

    Parameters
    ----------
    bounds
        Shared by all models: refuses what would make the queue too long.
    open_child
        Called where nothing is loaded and somebody waits; `opened` or `not_opened` follows.
    idle
        Called when nobody waits any more.
    ended
        Told why the child is of no more use; returns why the model is to be left alone, if it is.
    ran
        Told of each run: its rows and the seconds it took.
    """

    def __init__(
        self,
        expected: Expected,
        *,
        limits: BatchLimits,
        bounds: QueueBounds,
        open_child: Callable[["Batcher"], None],
        idle: Callable[["Batcher"], None],
        ended: Callable[[ServiceError], ServiceError | None],
        ran: Callable[[int, float], None],
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._expected = expected
        self._limits = limits
        self._bounds = bounds
        self._open_child = open_child
        self._idle = idle
        self._ended = ended
        self._ran = ran
        self._asked_at = 0.0
        self._waiting: deque[BatchRequest] = deque()
        self._sent: dict[int, BatchRequest] = {}
        self._asked: list[BatchRequest] = []
        self._dropped: list[int] = []
        self._child: LoadedChild | None = None
        self._is_opening = False
        self._is_busy = False
        self._is_flush_due = False
        self.is_giving_way = False
        self._left_in_child = 0
        self._next_number = 1
        self._sweeping: asyncio.TimerHandle | None = None

    @property
    def child(self) -> LoadedChild | None:
        """The child that has the model loaded."""
        return self._child

    @property
    def is_idle(self) -> bool:
        """Whether nobody waits for it, nor it for anything."""
        return not (self._waiting or self._sent or self._is_opening or self._is_busy)

    def pending(self) -> int:
        """Return how many requests wait for a run."""
        return len(self._waiting)

    def running(self) -> int:
        """Return how many requests the child is at."""
        return len(self._sent)

    def submit(self, request: BatchRequest, *, timeout: float, now: float) -> None:
        """Put a request in the queue; ``now`` is the event loop's time.

        Raises
        ------
        TooManyRequests
            If the queue is as long as it may be.
        DeadlineExceeded
            If its time is over.
        """
        if timeout <= 0:
            raise DeadlineExceeded(OVERDUE.format("waited"))
        self._bounds.enter(request)
        request.number = self._next_number
        self._next_number += 1
        if timeout < SWEPT_SECONDS:
            request.deadline = self._loop.call_later(timeout, self._overdue, request)
        else:
            # A timer for each costs more than to look through them now and then.
            request.due = now + timeout
            if self._sweeping is None:
                self._sweeping = self._loop.call_later(SWEEP_SECONDS, self._sweep)
        self._waiting.append(request)
        if not (self._is_flush_due or self._is_busy):
            self._go_on()

    def drop(self, request: BatchRequest) -> None:
        """Let go of a request whose client left."""
        if request.finish():
            self._bounds.end(request)
            self._let_go(request)

    def opened(self, child: LoadedChild) -> None:
        """Take a child that has the model loaded."""
        self._is_opening = False
        self._child = child
        child.attach(self._reported, self._lost)
        self._go_on()

    def not_opened(self, error: ServiceError) -> None:
        """Tell all who wait why the model is not loaded."""
        self._is_opening = False
        for request in self._take_all():
            self._fail(request, error)
        self._idle(self)

    def unload(self) -> LoadedChild | None:
        """Give up the child, which the caller closes; who waits is kept."""
        child, self._child = self._child, None
        self.is_giving_way = False
        if child is not None:
            child.detach()
        return child

    def give_way(self) -> None:
        """Begin no more of what waits until the child is free, and its place somebody else's."""
        self.is_giving_way = True

    def go_on(self) -> None:
        """Go on with what waits, with another child if this one was given up."""
        self.is_giving_way = False
        if self._waiting:
            # Not at once: whoever calls this looks for room for another first.
            self._loop.call_soon(self._go_on)

    @property
    def has_given_way(self) -> bool:
        """Whether the child may be unloaded for another model, however many wait for this one."""
        return self.is_giving_way and not (self._sent or self._is_busy or self._is_opening)

    def close(self, error: ServiceError) -> LoadedChild | None:
        """Fail everything and give up the child."""
        for request in self._take_all():
            self._fail(request, error)
        self._fail_sent(error)
        return self.unload()

    def _go_on(self) -> None:
        if self._child is None:
            if self._waiting and not self._is_opening:
                self._is_opening = True
                self._open_child(self)
        elif not self._is_busy and not self._is_flush_due:
            # Not at once: the other requests of this turn of the loop are to go with it.
            self._is_flush_due = True
            self._loop.call_soon(self._flush)

    def _flush(self) -> None:
        self._is_flush_due = False
        child = self._child
        if child is None or self._is_busy:
            self._go_on()
            return
        requests = self._next_requests()
        if not requests and not self._left_in_child and not self._dropped:
            if self.is_idle or self.has_given_way:
                self._idle(self)
            return
        dropped, self._dropped = self._dropped, []
        for number in dropped:
            self._sent.pop(number, None)
        self._is_busy = True
        self._asked_at = self._loop.time()
        self._asked = requests
        child.ask(
            asked_batch(
                requests, dropped, self._expected, self._limits, sequence=child.next_sequence()
            ),
            seconds=batch_seconds(self._expected, self._limits),
            max_report_bytes=most_report_bytes(self._sent.values()),
            max_rows=self._limits.run_rows,
        )

    def _take_back(self) -> None:
        """Let the last batch, which no child has seen, wait for the next one."""
        for request in reversed(self._asked):
            if self._sent.pop(request.number, None) is not None and not request.is_over:
                self._waiting.appendleft(request)
                self._bounds.come_back(request)

    def _next_requests(self) -> list[BatchRequest]:
        """Take what goes into the next batch: one request at least, if one waits."""
        waiting, sent, now = self._waiting, self._sent, self._loop.time()
        taken: list[BatchRequest] = []
        if self.is_giving_way:
            return taken
        n_rows, n_bytes = self._left_in_child, 0
        while waiting and len(taken) < MAX_REQUESTS:
            request = waiting[0]
            n_bytes += len(request.body)
            if taken and (n_rows >= self._limits.run_rows or n_bytes > MAX_SENT_BYTES):
                break
            waiting.popleft()
            n_rows += request.n_rows
            request.began = now
            sent[request.number] = request
            taken.append(request)
        self._bounds.leave(taken, now)
        return taken

    def _reported(self, report: ReportedBatch) -> None:
        """Take what the child answered; the next batch goes out before anybody is told."""
        self._is_busy, self._asked = False, []
        try:
            answers, refused = report.match(
                self._sent, self._expected, max_rows=self._limits.max_rows
            )
        except (FieldError, FrameError) as error:
            self._nonsense(error)
            return
        self._left_in_child = report.rows_left
        now = self._loop.time()
        self._bounds.served(report.n_rows, now)
        self._ran(report.n_rows, now - self._asked_at)
        self._flush()
        self._tell(answers)
        for request, failure in refused:
            self._fail(request, failure)

    def _tell(self, answers: list[Answer]) -> None:
        by_asker: dict[int, list[Answer]] = {}
        for answer in answers:
            if answer.request.finish():
                self._bounds.end(answer.request)
                by_asker.setdefault(id(answer.request.asker), []).append(answer)
        for found in by_asker.values():
            found[0].request.asker.answered(found)

    def _nonsense(self, error: Exception) -> None:
        child = self.unload()
        if child is not None:
            self._lost(child.condemn(str(error)), is_unread=False)

    def _lost(self, error: ServiceError, is_unread: bool) -> None:  # noqa: FBT001 - a callback
        """Take that the child died, or was killed: what it was on fails, the rest waits on."""
        self._child = None
        if is_unread:
            self._take_back()
        self._fail_sent(error)
        reason = self._ended(error)
        if reason is not None:
            for request in self._take_all():
                self._fail(request, reason)
        self._go_on()
        if self.is_idle:
            self._idle(self)

    def _fail_sent(self, error: ServiceError) -> None:
        self._is_busy = False
        self._left_in_child = 0
        self._dropped = []
        sent, self._sent = self._sent, {}
        for request in sent.values():
            self._fail(request, error)

    def _fail(self, request: BatchRequest, error: ServiceError) -> None:
        if request.finish():
            self._bounds.end(request)
            request.asker.failed(request, error)

    def _take_all(self) -> list[BatchRequest]:
        now = self._loop.time()
        requests = list(self._waiting)
        self._waiting.clear()
        self._bounds.leave(requests, now)
        return requests

    def _let_go(self, request: BatchRequest) -> None:
        if request.number in self._sent:
            self._dropped.append(request.number)
            return
        self._waiting.remove(request)
        self._bounds.leave([request], self._loop.time())

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
            self._bounds.end(request)
            self._let_go(request)
            request.asker.failed(request, DeadlineExceeded(OVERDUE.format(waited)))

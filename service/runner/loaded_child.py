"""A child with a model loaded, asked from an event loop a batch at a time."""

import asyncio
import signal
from collections.abc import Callable, Sequence
from concurrent.futures import Executor

from service.errors import DeadlineExceeded, OnnxModelCrashed, ServiceError
from service.runner.answers import Expected, failure_of
from service.runner.batch_messages import decode_report
from service.runner.description import LoadedOnnxModel
from service.runner.fields import FieldError, items
from service.runner.frames import Buffer, FrameError, Header, Kind, Status, parse_body
from service.runner.launch import describe_exit
from service.runner.link import Link
from service.runner.process import GRACE_SECONDS, RunnerProcess
from service.runner.reported_batch import ReportedBatch

Reported = Callable[[ReportedBatch], None]
# Told why, and whether the last batch was not even looked at.
Lost = Callable[[ServiceError, bool], None]


class LoadedChild:
    """Sends batches and reads reports; a child that answers nonsense, late or not at all is killed.

    Everything happens on the event loop but for what may wait: that is done by ``threads``.
    """

    def __init__(
        self,
        process: RunnerProcess,
        found: LoadedOnnxModel,
        expected: Expected,
        *,
        device: str,
        memory_bytes: int,
        threads: Executor,
    ) -> None:
        self.found = found
        self.device = device
        self.memory_bytes = memory_bytes
        self._process = process
        self._expected = expected
        self._threads = threads
        self._loop = asyncio.get_running_loop()
        self._link: Link | None = None
        self._reported: Reported | None = None
        self._lost: Lost | None = None
        self._sequence = 0
        self._asked: int | None = None
        self._seconds = 0.0
        self._overdue: asyncio.TimerHandle | None = None
        self._has_answered = False
        self._is_over = False

    @property
    def pid(self) -> int:
        """The process id of the child."""
        return self._process.pid

    def attach(self, reported: Reported, lost: Lost) -> None:
        """Begin to listen; `lost` is called once, if the child is of no more use."""
        self._reported, self._lost = reported, lost
        self._link = Link(
            self._loop,
            self._process.lend(),
            received=self._received,
            lost=self._gone,
        )

    def detach(self) -> None:
        """Listen no more; it is to be closed by whoever says so."""
        self._is_over = True
        self._reported = self._lost = None
        self._stop_clock()
        if self._link is not None:
            self._link.close()

    def close(self) -> None:
        """Kill the child and wait for its end; not to be called on the event loop."""
        self._process.close()

    def next_sequence(self) -> int:
        """Return the number of the next question."""
        self._sequence += 1
        return self._sequence

    def ask(
        self, frame: Sequence[Buffer], *, seconds: float, max_report_bytes: int, max_rows: int
    ) -> None:
        """Send a batch, under the last number given out; its report must come in time."""
        if self._link is None:
            raise RuntimeError("nobody listens to the child")
        self._process.allow_processor_time(seconds)
        self._asked, self._seconds = self._sequence, seconds
        self._overdue = self._loop.call_later(seconds + GRACE_SECONDS, self._too_late)
        self._link.send(
            frame,
            max_fields_bytes=max_report_bytes,
            max_tensor_bytes=max_rows * self._expected.n_words * 4,
        )

    def condemn(self, reason: str) -> OnnxModelCrashed:
        """Kill a child that answered nonsense; return what to say of it."""
        error = self._process.condemn(reason)
        self.detach()
        self._threads.submit(self.close)
        return error

    def _received(self, header: Header, fields: bytes, payload: bytes) -> None:
        self._stop_clock()
        asked, self._asked = self._asked, None
        try:
            _check_asked(header, asked)
            if header.status is Status.FAILED:
                self._whole_batch_failed(header, fields, payload)
                return
            report, words = decode_report(header, fields, payload, self._expected.n_words)
        except (FrameError, FieldError) as error:
            self._end(self._process.condemn(str(error)))
            return
        self._has_answered = True
        if self._reported is not None:
            self._reported(ReportedBatch(report, words))

    def _whole_batch_failed(self, header: Header, fields: bytes, payload: bytes) -> None:
        # The child's queue is in no known state: it is not asked again.
        told = parse_body(header, fields, payload).fields
        try:
            error = failure_of(told["code"], told["message"], items(told["violations"]))
        except KeyError as missing:
            raise FieldError(f"a failure: {missing}") from missing
        self._process.kill()
        self._end(error)

    def _too_late(self) -> None:
        self._process.kill()
        self._end(
            DeadlineExceeded(
                f"The ONNX model did not answer within {self._seconds:g} s and was stopped."
            )
        )

    def _gone(self, error: FrameError | None) -> None:
        if error is not None:
            self._end(self._process.condemn(str(error)))
            return
        # What became of it shows a moment later, and the log is told.
        looking = self._loop.run_in_executor(self._threads, self._process.cause_of_death)
        looking.add_done_callback(self._died)

    def _died(self, looking: "asyncio.Future[str]") -> None:
        cause = "it closed its socket" if looking.cancelled() else looking.result()
        # Of one that never answered no batch goes to another: that would die the same.
        is_unread = self._has_answered and self._link is not None and self._link.is_unread
        # Who else would: an operator, or the kernel where memory ran out.
        is_from_outside = cause == describe_exit(-signal.SIGKILL)
        error = OnnxModelCrashed(
            f"The process that ran the ONNX model died: {cause}.", is_from_outside=is_from_outside
        )
        self._end(error, is_unread=is_unread)

    def _end(self, error: ServiceError, *, is_unread: bool = False) -> None:
        if self._is_over:
            return
        lost = self._lost
        self.detach()
        self._threads.submit(self.close)
        if lost is not None:
            lost(error, is_unread)

    def _stop_clock(self) -> None:
        if self._overdue is not None:
            self._overdue.cancel()
            self._overdue = None


def _check_asked(header: Header, sequence: int | None) -> None:
    if header.kind is not Kind.BATCH or header.sequence != sequence:
        raise FrameError("it answered another question")

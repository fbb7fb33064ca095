"""The socket of a child in the hands of an event loop: frames out, frames in, nobody waits."""

import asyncio
import signal
import socket
from collections.abc import Callable, Sequence
from concurrent.futures import Executor

from service.errors import DeadlineExceeded, OnnxModelCrashed, ServiceError
from service.runner.messages.frames import (
    HEADER,
    Buffer,
    FrameError,
    Header,
    Kind,
    Status,
    parse_body,
    parse_header,
)
from service.runner.messages.onnx_models import FieldError, LoadedOnnxModel, items
from service.runner.messages.predict_batches import decode_report
from service.runner.model_output import Expected, failure_of
from service.runner.predict_requests import ReportedBatch
from service.runner.process import GRACE_SECONDS, RunnerProcess, describe_exit

BUFFERS_PER_CALL = 64
FIRST_BYTES = 2**16

Received = Callable[[Header, bytes, bytes], None]


class Link:
    """Frames to and from a child. One frame of the other side's is under way at most.

    Parameters
    ----------
    sock
        A socket that does not block; whoever gave it closes it.
    received
        Told of each frame: its header, and the bytes of its fields and its arrays.
    lost
        Told once that the other side is gone (None), or of what is no frame. The link is closed
        by then.

    Attributes
    ----------
    is_unread
        Whether the other side went before it had read the last frame.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        sock: socket.socket,
        *,
        received: Received,
        lost: Callable[[FrameError | None], None],
    ) -> None:
        self._loop = loop
        self._socket = sock
        self._received = received
        self._lost = lost
        self._max_fields_bytes = self._max_tensor_bytes = 0
        self._inbox = memoryview(bytearray(FIRST_BYTES))
        self._have = 0
        self._outbox: list[Buffer] = []
        self._is_open = True
        self._is_writing = False
        self.is_unread = False
        loop.add_reader(sock, self._read)

    def send(
        self, buffers: Sequence[Buffer], *, max_fields_bytes: int, max_tensor_bytes: int
    ) -> None:
        """Send a frame, whose answer may have so many bytes of fields and of arrays."""
        if not self._is_open:
            self.is_unread = True
            return
        self._max_fields_bytes, self._max_tensor_bytes = max_fields_bytes, max_tensor_bytes
        self._outbox = list(buffers)
        self._write()

    def close(self) -> None:
        """Look at the socket no more."""
        if self._is_open:
            self._is_open = False
            self._loop.remove_reader(self._socket)
            self._loop.remove_writer(self._socket)
            self._outbox.clear()

    def _give_up(self, error: FrameError | None) -> None:
        if self._is_open:
            self.close()
            self._lost(error)

    def _write(self) -> None:
        try:
            while self._outbox:
                self._forget(self._socket.sendmsg(self._outbox[:BUFFERS_PER_CALL]))
        except BlockingIOError:
            if not self._is_writing:
                self._loop.add_writer(self._socket, self._write)
                self._is_writing = True
        except OSError:
            self.is_unread = True
            self._give_up(None)
        else:
            if self._is_writing:
                self._loop.remove_writer(self._socket)
                self._is_writing = False

    def _forget(self, sent: int) -> None:
        done = 0
        for buffer in self._outbox:
            if sent < len(buffer):
                break
            sent -= len(buffer)
            done += 1
        del self._outbox[:done]
        if sent:
            self._outbox[0] = memoryview(self._outbox[0])[sent:]

    def _read(self) -> None:
        try:
            got = self._socket.recv_into(self._inbox[self._have :])
        except BlockingIOError:
            return
        except OSError:
            # The kernel says so of an end that was closed before it read all that was sent.
            got, self.is_unread = 0, True
        if not got:
            self.is_unread |= bool(self._outbox)
            self._give_up(None)
            return
        self._have += got
        try:
            self._look()
        except FrameError as error:
            self._give_up(error)

    def _look(self) -> None:
        """Pass on the frame if all of it is there; otherwise see to it that it has room."""
        if self._have < HEADER.size:
            return
        header = parse_header(
            self._inbox[: HEADER.size],
            max_fields_bytes=self._max_fields_bytes,
            max_tensor_bytes=self._max_tensor_bytes,
        )
        arrays = HEADER.size + header.fields_bytes
        end = arrays + header.tensor_bytes
        if self._have > end:
            raise FrameError("there is more than was asked for")
        if self._outbox:
            raise FrameError("an answer before the end of the question")
        if self._have == end:
            fields, payload = (
                bytes(self._inbox[HEADER.size : arrays]),
                bytes(self._inbox[arrays:end]),
            )
            self._have = 0
            self._max_fields_bytes = self._max_tensor_bytes = 0
            if len(self._inbox) > FIRST_BYTES:
                self._inbox = memoryview(bytearray(FIRST_BYTES))
            self._received(header, fields, payload)
        elif len(self._inbox) <= end:
            self._grow(end + 1)  # one more, to see what comes unasked

    def _grow(self, size: int) -> None:
        try:
            inbox = memoryview(bytearray(size))
        except MemoryError as error:
            raise FrameError("there is no memory for the frame") from error
        inbox[: self._have] = self._inbox[: self._have]
        self._inbox = inbox


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

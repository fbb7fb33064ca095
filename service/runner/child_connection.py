"""A child's socket on an event loop: frames out and frames in, without blocking."""

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from dataclasses import KW_ONLY, dataclass
from functools import partial

from service.errors import DeadlineExceeded, OnnxModelCrashed, ServiceError
from service.runner.messages.channel import BUFFERS_PER_CALL, forget
from service.runner.messages.convert import FieldError
from service.runner.messages.frames import (
    HEADER,
    Buffer,
    FrameError,
    Header,
    Kind,
    parse_header,
)
from service.runner.model_loading import OpenedModel
from service.runner.model_output import OutputSpec
from service.runner.predict_requests import BatchResponse, read_response
from service.runner.process import GRACE_SECONDS

# Larger answers are read in a thread.
FIRST_BYTES = 2**16

Respond = Callable[[BatchResponse], None]
# Receives the reason, and whether the child had not begun to read the last batch.
Lost = Callable[[ServiceError, bool], None]


@dataclass(eq=False, repr=False)
class LoadedChild:
    """Sends batches to a child and reads its results; kills it if they are invalid or late.

    Everything runs on the event loop, except calls that may block, which run on ``threads``, and
    the reading of large answers, on ``readers``.
    """

    opened: OpenedModel
    spec: OutputSpec
    _: KW_ONLY
    threads: Executor
    readers: Executor

    def __post_init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._process = self.opened.process
        self._socket = self._process.detach_socket()
        self._respond: Respond | None = None
        self._lost: Lost | None = None
        self._sequence = 0
        self._asked: int | None = None
        self._seconds = 0.0
        self._overdue: asyncio.TimerHandle | None = None
        self._max_fields_bytes = self._max_tensor_bytes = 0
        self._inbox = memoryview(bytearray(FIRST_BYTES))
        self._have = 0
        self._outbox: list[Buffer] = []
        self._is_open = False
        self._is_writing = False
        # Whether the child closed the socket before it had read the last batch.
        self._is_unread = False
        self._has_answered = False
        self._is_over = False

    def attach(self, respond: Respond, lost: Lost) -> None:
        """Begin to listen; `lost` is called once, when the child cannot be used any more."""
        self._respond, self._lost = respond, lost
        self._is_open = True
        self._loop.add_reader(self._socket, self._read)

    def detach(self) -> None:
        """Stop listening; the caller closes the child."""
        self._is_over = True
        self._respond = self._lost = None
        self._stop_clock()
        self._stop_watching()

    def close(self) -> None:
        """Kill the child and wait for its end; this blocks."""
        self._process.close()

    def next_sequence(self) -> int:
        """Return the number of the next request."""
        self._sequence += 1
        return self._sequence

    def ask(
        self, frame: Sequence[Buffer], *, seconds: float, max_result_bytes: int, max_rows: int
    ) -> None:
        """Send a batch with the last sequence number; its result must come in time."""
        self._process.extend_cpu_time(seconds)
        self._asked, self._seconds = self._sequence, seconds
        self._overdue = self._loop.call_later(seconds + GRACE_SECONDS, self._too_late)
        if not self._is_open:  # it has ended; why is being found out
            self._is_unread = True
            return
        self._max_fields_bytes = max_result_bytes
        self._max_tensor_bytes = max_rows * self.spec.n_words * 4
        self._outbox = list(frame)
        self._write()

    def refuse(self, reason: str) -> None:
        """Kill a child that sent an invalid response."""
        self._end(self._process.kill_for_protocol_error(reason))

    def _write(self) -> None:
        try:
            while self._outbox:
                forget(self._outbox, self._socket.sendmsg(self._outbox[:BUFFERS_PER_CALL]))
        except BlockingIOError:
            if not self._is_writing:
                self._loop.add_writer(self._socket, self._write)
                self._is_writing = True
        except OSError:
            self._is_unread = True
            self._gone()
        else:
            if self._is_writing:
                self._loop.remove_writer(self._socket)
                self._is_writing = False

    def _read(self) -> None:
        try:
            got = self._socket.recv_into(self._inbox[self._have :])
        except BlockingIOError:
            return
        except OSError:
            # The kernel reports a reset if the other end was closed with unread bytes.
            got, self._is_unread = 0, True
        if not got:
            self._is_unread |= bool(self._outbox)
            self._gone()
            return
        self._have += got
        try:
            self._look()
        except FrameError as error:
            self.refuse(str(error))

    def _look(self) -> None:
        """Take a complete frame; otherwise make room for the rest of it."""
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
            raise FrameError("there is more than one answer")
        if self._outbox:
            raise FrameError("the answer came before the end of the request")
        if self._have == end:
            frame = self._inbox
            if len(frame) > FIRST_BYTES:
                self._inbox = memoryview(bytearray(FIRST_BYTES))
            else:
                frame = memoryview(bytes(frame[:end]))
            self._have = 0
            self._max_fields_bytes = self._max_tensor_bytes = 0
            self._received(header, frame[HEADER.size : arrays], frame[arrays:end])
        elif self._have == len(self._inbox):
            # As bytes arrive, not as the child announces them; one byte more than those shows
            # whether it sends too much.
            self._grow(min(2 * self._have, end + 1))

    def _grow(self, size: int) -> None:
        try:
            inbox = memoryview(bytearray(size))
        except MemoryError as error:
            raise FrameError("there is not enough memory for the frame") from error
        inbox[: self._have] = self._inbox[: self._have]
        self._inbox = inbox

    def _received(self, header: Header, fields: memoryview, payload: memoryview) -> None:
        self._stop_clock()
        asked, self._asked = self._asked, None
        if header.kind is not Kind.BATCH or header.sequence != asked:
            self.refuse("its answer belongs to another request")
            return
        read = partial(read_response, header, fields, payload, self.spec)
        if len(fields) + len(payload) <= FIRST_BYTES:
            self._take(read)
        else:
            reading = self._loop.run_in_executor(self.readers, read)
            reading.add_done_callback(lambda done: self._take(done.result))

    def _take(self, read: Callable[[], BatchResponse]) -> None:
        try:
            response = read()
        except ServiceError as error:
            # The state of the child's queue is unknown: the child cannot be asked again.
            self._process.kill()
            self._end(error)
            return
        except (FrameError, FieldError) as error:
            self.refuse(str(error))
            return
        self._has_answered = True
        if self._respond is not None:
            self._respond(response)

    def _too_late(self) -> None:
        self._process.kill()
        self._end(
            DeadlineExceeded(
                f"The ONNX model did not answer within {self._seconds:g} s and was stopped."
            )
        )

    def _gone(self) -> None:
        """Find out why the child closed its socket; its exit status is known a moment later."""
        self._stop_watching()
        looking = self._loop.run_in_executor(self.threads, self._process.crashed)
        looking.add_done_callback(lambda done: self._died(done.result()))

    def _died(self, error: OnnxModelCrashed) -> None:
        # If the child never answered, another child would die of the same batch.
        self._end(error, is_unread=self._has_answered and self._is_unread)

    def _end(self, error: ServiceError, *, is_unread: bool = False) -> None:
        if self._is_over:
            return
        lost = self._lost
        self.detach()
        self.threads.submit(self.close)
        if lost is not None:
            lost(error, is_unread)

    def _stop_watching(self) -> None:
        if self._is_open:
            self._is_open = False
            self._loop.remove_reader(self._socket)
            self._loop.remove_writer(self._socket)
            self._outbox.clear()

    def _stop_clock(self) -> None:
        if self._overdue is not None:
            self._overdue.cancel()
            self._overdue = None

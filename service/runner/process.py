"""The parent's side of a child process."""

import io
import logging
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, cast

from service.errors import DeadlineExceeded, OnnxModelCrashed
from service.runner.launch import launch
from service.runner.messages.channel import Channel, ChannelClosed
from service.runner.messages.frames import (
    SMALL_FIELDS_BYTES,
    Array,
    Buffer,
    Frame,
    FrameError,
    Kind,
    Status,
    encode,
)

# One system call extends the limit for the requests of this many seconds.
RENEWED_SECONDS = 60.0
# Linux: the id of a process's CPU-time clock is made of its process id and this number.
CLOCK_OF_PROCESS = 2


class CpuTimeLimit:
    """Has the kernel kill a child (SIGXCPU) that computes while its parent is stopped or stuck.

    The parent ends requests that take too long. This limit, which a sandboxed child cannot
    change, ends a child whose parent no longer does.
    """

    def __init__(self, pid: int, *, renewed_seconds: float = RENEWED_SECONDS) -> None:
        self._pid = pid
        self._renewed_seconds = renewed_seconds
        self._enough_until = 0.0

    def extend(self, seconds: float) -> None:
        """Allow the child this much more time on every processor.

        Call it only before the child is reaped: another process may have its id afterwards.
        """
        now = time.monotonic()
        if now + seconds <= self._enough_until or sys.platform != "linux":
            return
        import resource  # noqa: PLC0415 - it exists on Linux only

        span = seconds + self._renewed_seconds
        # The child may have died meanwhile.
        with suppress(OSError):
            used = time.clock_gettime((~self._pid << 3) | CLOCK_OF_PROCESS)
            most = int(used + span * (os.cpu_count() or 1)) + 1
            _, hard = resource.prlimit(self._pid, resource.RLIMIT_CPU)
            if hard == resource.RLIM_INFINITY or most < hard:
                resource.prlimit(self._pid, resource.RLIMIT_CPU, (most, hard))
            self._enough_until = now + span


def describe_exit(code: int) -> str:
    """Describe how a process ended, by `subprocess`'s return code."""
    if code >= 0:
        return f"exit status {code}"
    names = {number.value: number.name for number in signal.Signals}
    return f"killed by {names.get(-code, f'signal {-code}')}"


GRACE_SECONDS = 2.0
REAP_SECONDS = 10.0
LAST_WORDS_SECONDS = 1.0
LAST_WORDS_LENGTH = 2000
# A child that prints more in a minute is killed.
MOST_PRINTED_BYTES = 2**20
PRINTED_SECONDS = 60.0
# Between two reads: what is printed meanwhile is read at once.
DRAIN_SECONDS = 0.01
# What a process does, by its first request, for messages; others run a model.
WORK = {Kind.FIT: "fitted the calibration", Kind.READ: "read the set"}

log = logging.getLogger(__name__)


class RunnerStartFailed(Exception):
    """The child process did not start."""


class RunnerProcess:
    """A child process that answers one request at a time, and is killed if it breaks the protocol.

    The kernel kills the child when the *thread* that started it ends: call `start` from a thread
    that lives as long as the child is needed.
    """

    def __init__(self, process: subprocess.Popen[bytes], channel: Channel) -> None:
        self._process = process
        self._channel = channel
        self._cpu_time = CpuTimeLimit(process.pid)
        self._lock = threading.Lock()
        self._sequence = 0
        self._killed = False
        self._work = "ran the ONNX model"
        self._reason = ""
        self._last_words = ""
        self._ready: Mapping[str, Any] | None = None
        self._reader = threading.Thread(
            target=self._drain, name=f"runner-log-{process.pid}", daemon=True
        )
        self._reader.start()

    @classmethod
    def start(cls) -> "RunnerProcess":
        """Start a child, without waiting until it has imported its libraries.

        Raises
        ------
        RunnerStartFailed
            If the operating system refuses.
        """
        try:
            ours, theirs = socket.socketpair()
        except OSError as error:
            raise RunnerStartFailed(f"no socket pair: {error}") from error
        with theirs:
            try:
                process = launch(theirs.fileno())
            except OSError as error:
                ours.close()
                raise RunnerStartFailed(f"no process: {error}") from error
        return cls(process, Channel(ours))

    @property
    def pid(self) -> int:
        """The child's process id."""
        return self._process.pid

    def is_alive(self) -> bool:
        """Whether the child has neither ended nor been killed.

        Its end of the socket closes a moment before its exit status is known.
        """
        return not self._killed and self._process.poll() is None and self._channel.is_open()

    def wait_ready(self, timeout: float) -> Mapping[str, Any]:
        """Wait until the child has imported its libraries; return its first message.

        Raises
        ------
        RunnerStartFailed
            If the child ends, is silent or sends another message; it is killed then.
        """
        with self._lock:
            if self._ready is not None:
                return self._ready
            try:
                frame = self._channel.receive(
                    deadline=time.monotonic() + timeout,
                    max_fields_bytes=SMALL_FIELDS_BYTES,
                    max_tensor_bytes=0,
                )
            except (TimeoutError, FrameError, ChannelClosed) as error:
                reason = f"its first message is invalid: {error}"
                if isinstance(error, TimeoutError):
                    reason = f"not ready after {timeout:g} s"
                elif isinstance(error, ChannelClosed):
                    reason = self.cause_of_death()
                self.kill()
                raise RunnerStartFailed(reason) from error
            if frame.kind is not Kind.READY:
                self.kill()
                raise RunnerStartFailed("its first message is not READY")
            self._ready = frame.fields
            return self._ready

    def call(
        self,
        kind: Kind,
        fields: Mapping[str, object],
        tensors: Mapping[str, Array] | None = None,
        *,
        timeout: float,
        max_tensor_bytes: int = 0,
        on_progress: Callable[[Mapping[str, Any]], None] | None = None,
    ) -> Frame:
        """Send a request and wait for the answer, which may be a failure that the child reports.

        ``on_progress`` is called with the fields of each report of progress, and may raise. The
        arrays of an answer may have ``max_tensor_bytes``.

        The child stops its run after ``timeout`` seconds; if it does not, it is killed
        `GRACE_SECONDS` later.

        Raises
        ------
        DeadlineExceeded
            If the child was killed because it took too long.
        OnnxModelCrashed
            If the child died, or was killed because it sent an invalid response.
        FrameError
            If the request is too large for a frame; nothing was sent.
        """
        with self._lock:
            self.extend_cpu_time(timeout)
            self._sequence += 1
            self._work = WORK.get(kind, self._work)
            request = Frame(
                kind, self._sequence, fields, tensors or {}, budget_ms=int(timeout * 1000)
            )
            buffers = encode(request)
            try:
                return self._exchange(request, buffers, timeout, max_tensor_bytes, on_progress)
            except BaseException:
                # After any exception, an interrupt too, the stream may be in the middle of a frame.
                self.kill()
                raise

    def _exchange(
        self,
        request: Frame,
        buffers: Sequence[Buffer],
        timeout: float,
        max_tensor_bytes: int,
        on_progress: Callable[[Mapping[str, Any]], None] | None,
    ) -> Frame:
        deadline = time.monotonic() + timeout + GRACE_SECONDS
        receive = partial(
            self._channel.receive,
            deadline=deadline,
            max_fields_bytes=SMALL_FIELDS_BYTES,
            max_tensor_bytes=max_tensor_bytes,
        )
        try:
            self._channel.send(buffers, deadline=deadline)
            while (answer := receive()).status is Status.PROGRESS:
                if on_progress is None or answer.tensors:
                    raise self.kill_for_protocol_error("it reported progress")
                on_progress(answer.fields)
        except TimeoutError as error:
            raise DeadlineExceeded(
                f"The ONNX model did not answer within {timeout:g} s and was stopped."
            ) from error
        except ChannelClosed as error:
            raise self.crashed() from error
        except FrameError as error:
            raise self.kill_for_protocol_error(str(error)) from error
        if (answer.kind, answer.sequence) != (request.kind, request.sequence):
            raise self.kill_for_protocol_error("its answer belongs to another request")
        if answer.status is Status.FAILED and answer.tensors:
            raise self.kill_for_protocol_error("it sent arrays with a failure")
        return answer

    def extend_cpu_time(self, seconds: float) -> None:
        """Extend the child's CPU-time limit to cover a request and the grace period."""
        if self._process.returncode is None:
            self._cpu_time.extend(seconds + GRACE_SECONDS)

    def kill_for_protocol_error(self, reason: str) -> OnnxModelCrashed:
        """Kill a child that sent an invalid response, and return the error to raise."""
        log.warning("child process %d sent an invalid response: %s", self.pid, reason)
        self.kill()
        return OnnxModelCrashed(
            f"The process that {self._work} sent an invalid response and was stopped."
        )

    def crashed(self) -> OnnxModelCrashed:
        """Return the error of a child that closed its socket; this may take a second."""
        cause = self.cause_of_death()
        return OnnxModelCrashed(
            f"The process that {self._work} died: {cause}.",
            # The operator killed it, or the kernel, which ran out of memory.
            is_from_outside=cause == describe_exit(-signal.SIGKILL) and not self._killed,
        )

    def detach_socket(self) -> socket.socket:
        """Return the socket, made non-blocking; `call` must not be used afterwards.

        Raises
        ------
        FrameError
            If the child has sent more than one answer.
        """
        with self._lock:
            return self._channel.detach()

    def kill(self) -> None:
        """Kill the child and its process group; safe at any time, from any thread."""
        self._killed = True
        if self._process.poll() is None:
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)

    def close(self) -> None:
        """Kill the child, reap it and release its resources."""
        self.kill()
        with self._lock:
            self._channel.close()
        try:
            self._process.wait(REAP_SECONDS)
        except subprocess.TimeoutExpired:
            log.exception("child process %d does not die", self.pid)
        self._reader.join(REAP_SECONDS)
        if self._process.stdout is not None and not self._reader.is_alive():
            self._process.stdout.close()

    def cause_of_death(self) -> str:
        """Describe how a child that closed its socket ended; this may take a second."""
        try:
            code = self._process.wait(LAST_WORDS_SECONDS)
        except subprocess.TimeoutExpired:
            cause = "it closed its socket"
        else:
            cause = describe_exit(code)
        if not self._killed:
            log.warning(
                "child process %d died: %s; last words: %s", self.pid, cause, self._last_words
            )
        return self._reason or cause

    def _drain(self) -> None:
        """Log the end of what the child prints, so that it never waits for a reader."""
        stream = cast("io.BufferedReader | None", self._process.stdout)
        if stream is None:
            return
        n_bytes, since = 0, time.monotonic()
        while printed := stream.read1(2**16):
            words = self._last_words + ascii(printed.decode(errors="replace"))[1:-1]
            self._last_words = words[-LAST_WORDS_LENGTH:]
            log.debug("child process %d: %s", self.pid, self._last_words)
            if time.monotonic() - since > PRINTED_SECONDS:
                n_bytes, since = 0, time.monotonic()
            n_bytes += len(printed)
            if n_bytes > MOST_PRINTED_BYTES and not self._killed:
                self._reason = f"it printed more than {MOST_PRINTED_BYTES} bytes in a minute"
                self.kill_for_protocol_error(self._reason)
            time.sleep(DRAIN_SECONDS)
        # One that dies idle is reaped at once, not at its next use. With a timeout, for a wait
        # without one would lock everybody else out of the process's status.
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(REAP_SECONDS)

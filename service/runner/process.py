"""One child process that runs users' ONNX models, as its parent sees it."""

import logging
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import service
from service.errors import DeadlineExceeded, OnnxModelCrashed
from service.runner.messages.channel import Channel, ChannelClosed
from service.runner.messages.frames import (
    MAX_FIELDS_BYTES,
    MAX_TENSOR_BYTES,
    SMALL_FIELDS_BYTES,
    Array,
    Buffer,
    Frame,
    FrameError,
    Kind,
    Status,
    encode,
)

# One request to the kernel serves all questions of so long.
RENEWED_SECONDS = 60.0
# The kernel's number of a process's clock of processor time, from its id.
CLOCK_OF_PROCESS = 2


class ProcessorTime:
    """A limit a little ahead of what a child can use before its parent must have acted.

    The clock on the wall ends what takes too long, by its parent's hand. This ends a child that
    computes while its parent does nothing, because that was stopped or is stuck: the kernel
    kills it (SIGXCPU), and the lock-down lets no child move the limit.
    """

    def __init__(self, pid: int, *, renewed_seconds: float = RENEWED_SECONDS) -> None:
        self._pid = pid
        self._renewed_seconds = renewed_seconds
        self._enough_until = 0.0

    def allow(self, seconds: float) -> None:
        """Let the child compute for so long from now on, on every processor there is.

        To be called while the child is not yet reaped: its id may be another's then.
        """
        now = time.monotonic()
        if now + seconds <= self._enough_until or sys.platform != "linux":
            return
        # Linux alone has it.
        import resource  # noqa: PLC0415

        span = seconds + self._renewed_seconds
        # One that died just now is none of our business here.
        with suppress(OSError):
            used = time.clock_gettime((~self._pid << 3) | CLOCK_OF_PROCESS)
            most = int(used + span * (os.cpu_count() or 1)) + 1
            _, hard = resource.prlimit(self._pid, resource.RLIMIT_CPU)
            if hard == resource.RLIM_INFINITY or most < hard:
                resource.prlimit(self._pid, resource.RLIMIT_CPU, (most, hard))
            self._enough_until = now + span


def process_memory(pid: int) -> int:
    """Return the bytes that are the process's share; 0 where the system does not tell."""
    try:
        text = Path(f"/proc/{pid}/smaps_rollup").read_text()
    except OSError:
        return 0
    for line in text.splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1]) * 1024
    return 0


# What CUDA needs to be found and told apart; everything else in the environment may be a secret.
PASSED_ON = ("CUDA_VISIBLE_DEVICES", "LD_LIBRARY_PATH", "NVIDIA_VISIBLE_DEVICES")


def launch(fd: int) -> subprocess.Popen[bytes]:
    """Start the child with ``fd`` as its only channel; what it prints can be read from a pipe.

    Raises
    ------
    OSError
        If the operating system refuses.
    """
    with removed_folder() as folder:
        return subprocess.Popen(  # noqa: S603 - our own interpreter and module
            [sys.executable, "-P", "-m", "service.child", str(fd), str(os.getpid())],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            cwd=folder,
            env=environment(),
            pass_fds=[fd],
            start_new_session=True,
        )


@contextmanager
def removed_folder() -> Iterator[str]:
    """Yield a path to a folder that is there no more.

    Nothing can be read or written there, and nothing is left behind however this process or the
    child ends: to start one takes long enough to be killed in the midst of it.
    """
    folder = tempfile.mkdtemp(prefix="howsure-runner-", dir=_temporary())
    if sys.platform != "linux":
        try:
            yield folder
        finally:
            Path(folder).rmdir()
        return
    try:
        opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    finally:
        Path(folder).rmdir()
    try:
        yield f"/proc/self/fd/{opened}"
    finally:
        os.close(opened)


def _temporary() -> str | None:
    """Return the folder for temporary ones, or None to let Python look for one.

    Python tries by writing a file, which stays if the process is killed at that moment.
    """
    usual = os.environ.get("TMPDIR") or "/tmp"  # noqa: S108 - mkdtemp makes a folder of its own
    return usual if os.access(usual, os.W_OK | os.X_OK) else None


def environment() -> dict[str, str]:
    """Return the child's whole environment: where its libraries are, and no secrets."""
    own = str(Path(service.__file__ or "").resolve().parent.parent)
    elsewhere = [path for path in sys.path if path != own and Path(path).is_absolute()]
    environment = {name: os.environ[name] for name in PASSED_ON if name in os.environ}
    return environment | {
        "PYTHONPATH": os.pathsep.join([own, *elsewhere]),
        "PYTHONUTF8": "1",
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
        # pyarrow's allocator would start a thread as it is loaded; with threads running no process
        # can be locked in.
        "JE_ARROW_MALLOC_CONF": "background_thread:false",
        "ARROW_DEFAULT_MEMORY_POOL": "jemalloc",
        # It would tell its maker of each model, by a thread that is there before any is locked in.
        "ORT_DISABLE_TELEMETRY": "1",
    }


def describe_exit(code: int) -> str:
    """Return how a process ended, by `subprocess`'s return code."""
    if code >= 0:
        return f"exit status {code}"
    try:
        return f"killed by {signal.Signals(-code).name}"
    except ValueError:
        return f"killed by signal {-code}"


GRACE_SECONDS = 2.0
REAP_SECONDS = 10.0
LAST_WORDS_SECONDS = 1.0
LAST_WORDS_LINES = 20
LOG_LINE_BYTES = 2000

log = logging.getLogger(__name__)


class RunnerStartFailed(Exception):
    """The child process did not come up."""


class RunnerProcess:
    """A child process: started, asked one thing at a time, killed when it misbehaves.

    The child asks the kernel to be killed when the *thread* that started it ends: call `start`
    from a thread that lives as long as the child is wanted.
    """

    def __init__(self, process: subprocess.Popen[bytes], channel: Channel) -> None:
        self._process = process
        self._channel = channel
        self._processor_time = ProcessorTime(process.pid)
        self._lock = threading.Lock()
        self._sequence = 0
        self._killed = False
        self._last_words: deque[str] = deque(maxlen=LAST_WORDS_LINES)
        self._ready: Mapping[str, Any] | None = None
        self._reader = threading.Thread(
            target=self._drain, name=f"runner-log-{process.pid}", daemon=True
        )
        self._reader.start()

    @classmethod
    def start(cls) -> "RunnerProcess":
        """Start a child; it imports its libraries while the caller goes on.

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

        Its end of the socket is closed a moment before anybody can know that it ended.
        """
        return not self._killed and self._process.poll() is None and self._channel.is_open()

    def wait_ready(self, timeout: float) -> Mapping[str, Any]:
        """Wait until the child has imported its libraries; return what it says about them.

        Raises
        ------
        RunnerStartFailed
            If it ends, stays silent or says something else. It is dead then.
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
            except TimeoutError as error:
                self.kill()
                raise RunnerStartFailed(f"not ready after {timeout:g} s") from error
            except FrameError as error:
                self.kill()
                raise RunnerStartFailed(f"it spoke another language: {error}") from error
            except ChannelClosed as error:
                cause = self.cause_of_death()
                self.kill()
                raise RunnerStartFailed(cause) from error
            if frame.kind is not Kind.READY:
                self.kill()
                raise RunnerStartFailed("it spoke before it was ready")
            self._ready = frame.fields
            return self._ready

    def call(
        self,
        kind: Kind,
        fields: Mapping[str, object],
        tensors: Mapping[str, Array] | None = None,
        *,
        timeout: float,
        max_tensor_bytes: int = MAX_TENSOR_BYTES,
    ) -> Frame:
        """Ask the child and wait for its answer, which may be a failure it reports.

        The child stops itself when ``timeout`` (in seconds) has passed; if it cannot, it is killed
        `GRACE_SECONDS` later.

        Raises
        ------
        DeadlineExceeded
            If it had to be killed for its time.
        OnnxModelCrashed
            If it died, or answered what it may not. It is dead then.
        FrameError
            If the request is too large for a frame; nothing was sent.
        """
        with self._lock:
            self.allow_processor_time(timeout)
            self._sequence += 1
            request = Frame(
                kind, self._sequence, fields, tensors or {}, budget_ms=int(timeout * 1000)
            )
            buffers = encode(request)
            try:
                return self._exchange(request, buffers, timeout, max_tensor_bytes)
            except BaseException:
                # Whatever ended the exchange (an interrupt too), the stream now stands in the
                # middle of something.
                self.kill()
                raise

    def _exchange(
        self, request: Frame, buffers: Sequence[Buffer], timeout: float, max_tensor_bytes: int
    ) -> Frame:
        deadline = time.monotonic() + timeout + GRACE_SECONDS
        try:
            self._channel.send(buffers, deadline=deadline)
            answer = self._channel.receive(
                deadline=deadline,
                max_fields_bytes=MAX_FIELDS_BYTES
                if request.kind is Kind.LOAD
                else SMALL_FIELDS_BYTES,
                max_tensor_bytes=max_tensor_bytes,
            )
        except TimeoutError as error:
            raise DeadlineExceeded(
                f"The ONNX model did not answer within {timeout:g} s and was stopped."
            ) from error
        except ChannelClosed as error:
            cause = self.cause_of_death()
            raise OnnxModelCrashed(
                f"The process that ran the ONNX model died: {cause}.",
                is_from_outside=cause == describe_exit(-signal.SIGKILL) and not self._killed,
            ) from error
        except FrameError as error:
            raise self.condemn(str(error)) from error
        if (answer.kind, answer.sequence) != (request.kind, request.sequence):
            raise self.condemn("it answered another question")
        if answer.status is Status.FAILED and answer.tensors:
            raise self.condemn("it sent arrays with a failure")
        return answer

    def allow_processor_time(self, seconds: float) -> None:
        """Let the child compute for so long, and until it would be killed for being late."""
        if self._process.returncode is None:
            self._processor_time.allow(seconds + GRACE_SECONDS)

    def condemn(self, reason: str) -> OnnxModelCrashed:
        """Kill a child that answered what it may not, and return the error to raise."""
        log.warning("child process %d answered nonsense and is killed: %s", self.pid, reason)
        self.kill()
        return OnnxModelCrashed(
            "The process that ran the ONNX model answered nonsense and was stopped."
        )

    def lend(self) -> socket.socket:
        """Give the socket to somebody who reads and writes it without waiting.

        `call` must not be used from then on.

        Raises
        ------
        FrameError
            If the child has sent more than it was asked for.
        """
        with self._lock:
            return self._channel.lend()

    def kill(self) -> None:
        """Kill the child and its process group; safe at any time, from any thread."""
        self._killed = True
        if self._process.poll() is None:
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)

    def close(self) -> None:
        """Kill the child, reap it and give back all it held."""
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
        """Say what became of a child that closed its socket; it may take a second to show."""
        try:
            code = self._process.wait(LAST_WORDS_SECONDS)
        except subprocess.TimeoutExpired:
            cause = "it closed its socket"
        else:
            cause = describe_exit(code)
        if not self._killed:
            words = " | ".join(self._last_words)
            log.warning("child process %d died: %s; last words: %s", self.pid, cause, words)
        return cause

    def _drain(self) -> None:
        """Pass on what the child prints, so that it never waits for a reader."""
        stream = self._process.stdout
        if stream is None:
            return
        while line := stream.readline(LOG_LINE_BYTES):
            text = line.decode(errors="replace").rstrip()
            self._last_words.append(ascii(text)[1:-1])
            log.debug("child process %d: %s", self.pid, self._last_words[-1])
        # One that dies idle is reaped at once, not at its next use. With a timeout, for a wait
        # without one would lock everybody else out of the process's status.
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(REAP_SECONDS)

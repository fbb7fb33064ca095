"""The supervisor of several server processes: starts them, restarts them, and stops them."""

import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from types import FrameType

import structlog

import service
from service.cli.failure import CommandFailed
from service.runner.process import describe_exit
from service.settings import Settings

POLL_SECONDS = 0.05
FIRST_PAUSE_SECONDS = 0.5
LONGEST_PAUSE_SECONDS = 30.0
# If a process ran this long, its start was not the cause of its end.
STEADY_SECONDS = 60.0
HUNG_SECONDS = 30.0
# A signal that comes before a process handles it ends the process.
AS_ASKED = (0, -signal.SIGTERM, -signal.SIGINT)

log = structlog.get_logger(__name__)


@dataclass(eq=False, repr=False)
class Supervisor:
    """Keeps ``settings.processes`` server processes alive on one port.

    Each process listens on a socket of its own (SO_REUSEPORT), and the kernel spreads connections
    over them.

    Parameters
    ----------
    settings : Settings
    reserved : socket
        Bound to the port and not listening; the supervisor closes it.
    on_ready : callable
        Called once, when all processes answer.
    hung_seconds : float
        A process writes its metrics each second; without a write for this long it is replaced.
    """

    settings: Settings
    reserved: socket.socket
    on_ready: Callable[[], None]
    _: KW_ONLY
    hung_seconds: float = HUNG_SECONDS

    def __post_init__(self) -> None:
        # Set after `bind`, which refuses a port that another program uses.
        self.reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        self._stopping = threading.Event()
        self._signal = signal.SIGTERM
        self._slots: list[_Slot] = []
        self._has_started = False
        self._failure: str | None = None

    def run(self) -> None:
        """Run until SIGTERM or SIGINT, pass it on to all processes, and wait for them to end.

        Raises
        ------
        CommandFailed
            If a process fails at the first start or at the end.
        """
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._stop)
        with tempfile.TemporaryDirectory(prefix="howsure-") as folder:
            self._slots = [
                _Slot(self.settings, self.reserved.getsockname(), Path(folder, f"{number}"))
                for number in range(1, self.settings.processes + 1)
            ]
            while not self._stopping.wait(POLL_SECONDS):
                for slot in self._slots:
                    self._look_after(slot)
                if not self._has_started and all(slot.is_ready for slot in self._slots):
                    self._has_started = True
                    self.on_ready()
            self.reserved.close()
            self._end()
        if self._failure is not None:
            raise CommandFailed(self._failure)

    def _stop(self, number: int, _frame: FrameType | None) -> None:
        self._signal = signal.Signals(number)
        if self._stopping.is_set():  # a second signal: stop at once
            for slot in self._slots:
                slot.send(self._signal)
        self._stopping.set()

    def _look_after(self, slot: "_Slot") -> None:
        how = slot.look(self.hung_seconds)
        if how is None:
            return
        if self._has_started:
            pause = slot.restart_later()
            log.error("server_process_ended", process=slot.name, reason=how, next_start_in=pause)
        else:
            self._fail(slot, f"did not start ({how}); the lines above say why")
            self._stopping.set()

    def _end(self) -> None:
        for slot in self._slots:
            slot.send(self._signal)
        for slot in self._slots:
            code = slot.wait()
            if code not in AS_ASKED:
                self._fail(slot, f"ended abnormally ({describe_exit(code)})")

    def _fail(self, slot: "_Slot", what: str) -> None:
        which = f"server process {slot.name} of {self.settings.processes}"
        self._failure = self._failure or f"{which} {what}"


class _Slot:
    """One of the server processes, and those that replace it."""

    def __init__(self, settings: Settings, address: tuple[str, int], file: Path) -> None:
        self.name = file.name
        self.is_ready = False
        self._command = [sys.executable, "-P", "-m", "service.cli.processes", str(os.getpid())]
        self._command += [address[0], str(address[1]), str(file)]
        self._environment = _environment(settings)
        self._file = file
        self._process: subprocess.Popen[bytes] | None = None
        self._pause = FIRST_PAUSE_SECONDS
        self._starts_at = time.monotonic()
        self._written: int | None = None
        self._written_at = 0.0

    def look(self, hung_seconds: float) -> str | None:
        """Start the process if it is due, end it if it hangs; return how it ended, if it did."""
        now = time.monotonic()
        if self._process is None:
            if now < self._starts_at:
                return None
            try:
                self._start(now)
            except OSError as error:
                return f"it could not be launched: {error}"
            return None
        code = self._process.poll()
        if code is not None:
            return describe_exit(code)
        silent = self._silent_seconds(now)
        if silent > hung_seconds:
            log.error("server_process_hangs", process=self.name, seconds=round(silent))
            self._process.kill()
        return None

    def restart_later(self) -> float:
        """Start the process again after a pause, and return the pause in seconds."""
        if time.monotonic() - self._starts_at > STEADY_SECONDS:
            self._pause = FIRST_PAUSE_SECONDS
        pause = self._pause
        self._pause = min(2 * pause, LONGEST_PAUSE_SECONDS)
        self._process = None
        self._starts_at = time.monotonic() + pause
        return pause

    def send(self, number: signal.Signals) -> None:
        """Send a signal, if the process is there."""
        if self._process is not None:
            self._process.send_signal(number)

    def wait(self) -> int:
        """Wait for the end of the process and return its exit status, negative for a signal."""
        return 0 if self._process is None else self._process.wait()

    def _start(self, now: float) -> None:
        # Called on the main thread: the kernel ends the process with the thread that started it.
        self._process = subprocess.Popen(  # noqa: S603 - our own interpreter and module
            self._command,
            stdin=subprocess.DEVNULL,
            env=self._environment,
            # Only the supervisor gets an interrupt from the terminal; it passes it on.
            start_new_session=True,
        )
        self._starts_at = now
        self.is_ready = False
        self._written = self._last_write()

    def _silent_seconds(self, now: float) -> float:
        """Return the time since the last write of a process that has started, else 0."""
        written = self._last_write()
        if written != self._written:
            self.is_ready, self._written, self._written_at = True, written, now
        return now - self._written_at if self.is_ready else 0.0

    def _last_write(self) -> int | None:
        return self._file.stat().st_mtime_ns if self._file.exists() else None


def _environment(settings: Settings) -> dict[str, str]:
    """Return the environment with all settings, from options and variables."""
    given = {f"HOWSURE_{name.upper()}": str(value) for name, value in settings}
    own = str(Path(service.__file__ or "").resolve().parent.parent)
    found = [path for path in sys.path if path and path != own]
    return os.environ | given | {"PYTHONPATH": os.pathsep.join([own, *found])}

"""The `howsure` command, and `howsure serve` as a process."""

import contextlib
import io
import logging
import multiprocessing
import os
import re
import signal
import subprocess
import sys
import time
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path

import httpx
import pytest
import structlog
from databases import put_sqlite_file
from forked_children import SERVER

from service import startup
from service.cli import main
from service.runner.process import RunnerProcess
from service.startup import OURS
from service.storage.schema import upgrade

FORKS = multiprocessing.get_context("forkserver")
# `service.app` is half of the start of a command that serves.
COMMANDS = ["service.cli.calibrate", "service.cli.serve", "service.app", "read_migrations"]
FORKS.set_forkserver_preload(COMMANDS)

Done = subprocess.CompletedProcess[str]


class Command(FORKS.Process):
    """A command under way, to be waited for or killed as a `subprocess.Popen` is.

    Parameters
    ----------
    words : list of str
        What stands behind ``howsure``.
    folder : Path
        Where it works.
    settings : dict of str
        Further environment variables.
    out, err : Path
        Files that are written on.
    """

    def __init__(
        self, words: list[str], *, folder: Path, settings: dict[str, str], out: Path, err: Path
    ) -> None:
        arguments = (words, os.environ | settings, folder, out, err)
        super().__init__(target=_run, args=arguments, daemon=True)
        self.words = words
        self.start()

    def poll(self) -> int | None:
        return self.exitcode

    def wait(self, timeout: float | None = None) -> int:
        self.join(timeout)
        if self.exitcode is None:
            raise subprocess.TimeoutExpired(self.words, timeout)
        return self.exitcode

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)


def _settings(folder: Path, settings: dict[str, str]) -> dict[str, str]:
    return {"HOWSURE_DATA_DIR": str(folder / "data"), "HOWSURE_DEVICE": "cpu"} | settings


def _run(words: list[str], variables: dict[str, str], folder: Path, out: Path, err: Path) -> None:
    for path, number in ((out, 1), (err, 2)):
        with path.open("ab") as file:
            os.dup2(file.fileno(), number)
    # A shell lets what it runs in the background ignore Ctrl-C, and so all that comes of it.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.environ.clear()
    os.environ.update(variables)
    os.chdir(folder)
    sys.argv = ["howsure", *words]

    main()


def howsure(*arguments: object, folder: Path | None = None, **settings: str) -> Done:
    """Run a command in this process and return what it printed; children of it are forked.

    With ``folder`` it works there, and its data lies below it.
    """
    words = [str(argument) for argument in arguments]
    out, err = io.StringIO(), io.StringIO()
    with (
        pytest.MonkeyPatch.context() as patch,
        restored_process(),
        warnings.catch_warnings(),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
    ):
        patch.setattr(sys, "argv", ["howsure", *words])
        patch.setattr(RunnerProcess, "start", SERVER.start_child)
        patch.setattr(startup, "upgrade", _upgrade)
        if folder is not None:
            patch.chdir(folder)
            settings = _settings(folder, settings)
        for name, value in settings.items():
            patch.setenv(name, value)
        # A refused `serve` leaves its socket to the end of the process.
        warnings.filterwarnings("ignore", "unclosed <socket", ResourceWarning)
        status = _exit_status()
    return subprocess.CompletedProcess(words, status, out.getvalue(), err.getvalue())


def _upgrade(url: str) -> None:
    """Upgrade a database; a new one of SQLite begins as a copy."""
    put_sqlite_file(url)
    upgrade(url)


def _exit_status() -> int:
    try:
        main()
    except SystemExit as end:
        return end.code or 0
    return 0


@contextlib.contextmanager
def restored_process() -> Iterator[None]:
    """Undo what a command changes in its process: file modes, signal handlers, logging."""
    root, ours, configuration = logging.getLogger(), logging.getLogger(OURS), structlog.get_config()
    mask, hook, handlers, level = os.umask(0o022), sys.unraisablehook, root.handlers[:], ours.level
    os.umask(mask)
    changed = (signal.SIGINT, signal.SIGTERM, signal.SIGALRM)
    signals = {number: signal.getsignal(number) for number in changed}
    try:
        yield
    finally:
        for number, handler in signals.items():
            signal.signal(number, handler)
        os.umask(mask)
        sys.unraisablehook, root.handlers[:] = hook, handlers
        ours.setLevel(level)
        structlog.configure(**configuration)


class ServedProcess:
    """`howsure serve` on a folder, on a free port; killed with its children when the block ends.

    ``words`` are what stands behind ``howsure``.
    """

    def __init__(self, folder: Path, words: Sequence[str] = ("serve",), **settings: str) -> None:
        defaults = {"data_dir": str(folder), "port": "0", "worker_port": "0", "device": "cpu"}
        options = {f"HOWSURE_{name.upper()}": s for name, s in (defaults | settings).items()}
        put_sqlite_file(f"sqlite:///{folder / 'howsure.sqlite3'}")
        self.log = folder / "serve.log"
        self.log.touch()
        self.seen = len(self.log.read_text())
        self.process = Command(
            list(words), folder=folder, settings=options, out=Path(os.devnull), err=self.log
        )

    def __enter__(self) -> httpx.Client:
        self.client = httpx.Client(base_url=self._address(), timeout=60)
        return self.client

    def __exit__(self, *_: object) -> None:
        self.client.close()
        self.kill()

    def kill(self) -> None:
        """Send SIGKILL: no handler runs, nothing is cleaned up."""
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def _address(self) -> str:
        while self.process.poll() is None:
            found = re.search(r"http://[\d.]+:\d+", self.log.read_text()[self.seen :])
            if found:
                return found[0]
            time.sleep(0.01)
        raise AssertionError(f"the service did not start: {self.log.read_text()[self.seen :]}")

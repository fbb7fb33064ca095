"""The `howsure` command, and `howsure serve` as a process."""

import contextlib
import io
import multiprocessing
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import httpx
import pytest

from service.cli import main

TIMEOUT = 120
FORKS = multiprocessing.get_context("forkserver")
# `service.app` is half of the start of a command that serves.
FORKS.set_forkserver_preload(["service.cli.calibrate", "service.cli.serve", "service.app"])

Done = subprocess.CompletedProcess[str]


class Command:
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
        self.words = words
        arguments = (words, os.environ | settings, folder, out, err)
        self._process = FORKS.Process(target=_run, args=arguments, daemon=True)
        self._process.start()
        self.pid = self._process.pid

    def poll(self) -> int | None:
        return self._process.exitcode

    def wait(self, timeout: float | None = None) -> int:
        self._process.join(timeout)
        if self._process.exitcode is None:
            raise subprocess.TimeoutExpired(self.words, timeout)
        return self._process.exitcode

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        self._process.terminate()

    def kill(self) -> None:
        self._process.kill()


def howsure(*arguments: object, folder: Path, **settings: str) -> Done:
    """Run a command in ``folder``, whose data lies below it, and return what it said."""
    words = [str(argument) for argument in arguments]
    with tempfile.TemporaryDirectory() as kept:
        out, err = Path(kept, "stdout"), Path(kept, "stderr")
        begun = Command(
            words, folder=folder, settings=_settings(folder, settings), out=out, err=err
        )
        try:
            status = begun.wait(TIMEOUT)
        finally:
            begun.kill()
        return subprocess.CompletedProcess(words, status, out.read_text(), err.read_text())


def started_afresh(*arguments: object, folder: Path, **settings: str) -> Done:
    """Do the same with ``python -m service``."""
    return subprocess.run(
        [sys.executable, "-m", "service", *map(str, arguments)],
        env=os.environ | _settings(folder, settings),
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=TIMEOUT,
        check=False,
    )


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


def howsure_here(*arguments: object, **settings: str) -> Done:
    """Run a command in this process: for those that speak to a service, or fail before they log."""
    words = [str(argument) for argument in arguments]
    out, err, status = io.StringIO(), io.StringIO(), 0
    mask = os.umask(0o022)
    os.umask(mask)
    with (
        pytest.MonkeyPatch.context() as patch,
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
    ):
        patch.setattr(sys, "argv", ["howsure", *words])
        for name, value in settings.items():
            patch.setenv(name, value)
        try:
            main()
        except SystemExit as end:
            status = end.code
        finally:
            os.umask(mask)  # commands that keep data narrow that of this process
    return subprocess.CompletedProcess(words, status or 0, out.getvalue(), err.getvalue())


class ServedProcess:
    """`howsure serve` on a folder, on a free port; killed with its children when the block ends.

    ``words`` are what stands behind ``howsure``.
    """

    def __init__(self, folder: Path, words: Sequence[str] = ("serve",), **settings: str) -> None:
        options = {
            "HOWSURE_DATA_DIR": str(folder),
            "HOWSURE_PORT": "0",
            "HOWSURE_WORKER_PORT": "0",
            "HOWSURE_DEVICE": "cpu",
        } | {f"HOWSURE_{name.upper()}": value for name, value in settings.items()}
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

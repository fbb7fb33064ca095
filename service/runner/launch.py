"""How a child process is started: with an empty environment, in an empty folder, alone."""

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import service

# What CUDA needs to be found and told apart; everything else in the environment may be a secret.
PASSED_ON = ("CUDA_VISIBLE_DEVICES", "LD_LIBRARY_PATH", "NVIDIA_VISIBLE_DEVICES")


def launch(fd: int) -> subprocess.Popen[bytes]:
    """Start the child with ``fd`` as its only channel; what it prints can be read from a pipe.

    Raises
    ------
    OSError
        If the operating system refuses.
    """
    with _removed_folder() as folder:
        return subprocess.Popen(  # noqa: S603 - our own interpreter and module
            [sys.executable, "-P", "-m", "service.runner.child", str(fd), str(os.getpid())],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            cwd=folder,
            env=environment(),
            pass_fds=[fd],
            start_new_session=True,
        )


@contextmanager
def _removed_folder() -> Iterator[str]:
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

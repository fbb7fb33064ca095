"""How a child process is started: with an empty environment, in an empty folder, alone."""

import os
import signal
import subprocess
import sys
import tempfile
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
    # Its working directory is removed as soon as it stands in it: there is nothing to read there,
    # nothing can be written, and nothing is left behind however it ends.
    folder = tempfile.mkdtemp(prefix="howsure-runner-")
    try:
        return subprocess.Popen(  # noqa: S603 - our own interpreter and module
            [sys.executable, "-P", "-m", "service.runner.child", str(fd), str(os.getpid())],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            cwd=folder,
            env=_environment(),
            pass_fds=[fd],
            start_new_session=True,
        )
    finally:
        Path(folder).rmdir()


def _environment() -> dict[str, str]:
    """Return the child's whole environment: where its libraries are, and no secrets."""
    own = str(Path(service.__file__ or "").resolve().parent.parent)
    elsewhere = [path for path in sys.path if path != own and Path(path).is_absolute()]
    environment = {name: os.environ[name] for name in PASSED_ON if name in os.environ}
    return environment | {
        "PYTHONPATH": os.pathsep.join([own, *elsewhere]),
        "PYTHONUTF8": "1",
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
    }


def describe_exit(code: int) -> str:
    """Return how a process ended, by `subprocess`'s return code."""
    if code >= 0:
        return f"exit status {code}"
    try:
        return f"killed by {signal.Signals(-code).name}"
    except ValueError:
        return f"killed by signal {-code}"

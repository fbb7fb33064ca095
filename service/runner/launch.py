"""Starts the operating system's process of a child."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import service

# CUDA needs these variables; any other one may be a secret.
PASSED_ON = ("CUDA_VISIBLE_DEVICES", "LD_LIBRARY_PATH", "NVIDIA_VISIBLE_DEVICES")


def launch(fd: int) -> subprocess.Popen[bytes]:
    """Start the child with ``fd`` as its only channel; its standard output is a pipe.

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
    """Yield a path to a folder that has been deleted.

    Nothing can be read or written there, and nothing is left behind if this process or the child
    is killed while it starts.
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
    """Return the folder for temporary folders, or None to let Python search for one.

    Python tests a folder by writing a file, which stays if the process is killed at that moment.
    """
    usual = os.environ.get("TMPDIR") or "/tmp"  # noqa: S108 - mkdtemp makes a folder of its own
    return usual if os.access(usual, os.W_OK | os.X_OK) else None


def environment() -> dict[str, str]:
    """Return the child's complete environment: the paths of its libraries, and no secrets."""
    own = str(Path(service.__file__ or "").resolve().parent.parent)
    elsewhere = [path for path in sys.path if path != own and Path(path).is_absolute()]
    environment = {name: os.environ[name] for name in PASSED_ON if name in os.environ}
    return environment | {
        "PYTHONPATH": os.pathsep.join([own, *elsewhere]),
        "PYTHONUTF8": "1",
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
        # pyarrow's allocator would start a thread when it is imported; a process with several
        # threads cannot be sandboxed.
        # Arenas beside the first keep addresses, which count against the child's memory.
        "JE_ARROW_MALLOC_CONF": "background_thread:false,narenas:1",
        "ARROW_DEFAULT_MEMORY_POOL": "jemalloc",
        # ONNX Runtime's telemetry would start a thread before the process is sandboxed.
        "ORT_DISABLE_TELEMETRY": "1",
    }

"""Drop the rights of a process before it reads an uploaded file.

Open files stay usable: the socket to the parent, and the pipe for printed text.
"""

import os
import sys
import sysconfig
from pathlib import Path

import howsure
import service
from service.child.lockdown.landlock import (
    LockdownFailed,
    drop_capabilities,
    gain_no_privileges,
    is_linux,
    restrict_files,
)
from service.child.lockdown.seccomp import filter_system_calls
from service.child.lockdown.support import LANDLOCK, SECCOMP, missing
from service.errors import SandboxUnavailable
from service.runner.messages.sandbox_rules import SandboxRules

PACKAGES = ("site-packages", "dist-packages")
# Shared libraries of the system; the loader searches these folders for dependencies.
SYSTEM = tuple(map(Path, ("/lib", "/lib64", "/usr/lib", "/usr/lib64", "/usr/local/lib")))
LOADER = (Path("/etc/ld.so.cache"),)
PROCESSORS = tuple(
    map(Path, ("/proc/cpuinfo", "/sys/devices/system/cpu", "/sys/devices/system/node"))
)
# CUDA does not document what it reads. It is loaded earlier, and may read these later.
CUDA = tuple(
    map(
        Path,
        (
            "/usr",
            "/opt/cuda",
            "/opt/nvidia",
            "/etc/nvidia",
            "/sys",
            "/proc/self",
            "/proc/driver",
            "/proc/devices",
            "/proc/meminfo",
            "/proc/modules",
            "/proc/sys",
            "/dev/urandom",
        ),
    )
)
CUDA_DEVICES = ("nvidia*", "nvidia-caps/*", "dxg", "null", "zero")


def libraries() -> list[Path]:
    """Return the folders of Python, of packages, of this service and of the system's libraries.

    Other entries of ``sys.path`` may be folders with arbitrary files.
    """
    of_python = [sysconfig.get_path(name) for name in ("stdlib", "platstdlib")]
    installed = [path for path in sys.path if Path(path).name in PACKAGES]
    own = [Path(package.__file__ or "").resolve().parent for package in (service, howsure)]
    return [*map(Path, of_python), *map(Path, installed), *own, *SYSTEM, *LOADER]


def readable(*, uses_cuda: bool) -> list[Path]:
    """Return the paths that may be read."""
    found = [*libraries(), *PROCESSORS]
    if uses_cuda:
        paths = os.environ.get("LD_LIBRARY_PATH", "").split(os.pathsep)
        found += [*CUDA, *(Path(path) for path in paths if Path(path).is_absolute())]
    return found


def devices(*, uses_cuda: bool) -> list[Path]:
    """Return the device files that may be used."""
    if not uses_cuda:
        return []
    return [path for pattern in CUDA_DEVICES for path in sorted(Path("/dev").glob(pattern))]


HOW_TO_ALLOW = (
    "use a kernel that has it (Linux 5.13 or later with Landlock, on x86-64 or aarch64), or set "
    "HOWSURE_ALLOW_UNSANDBOXED=true if whoever may upload models may also run programs here"
)


def lock_down(rules: SandboxRules, *, uses_cuda: bool) -> None:
    """Drop all rights that a model does not need, for good.

    Call it while one thread is running: Landlock restricts the calling thread and threads that it
    starts later. With CUDA the driver's threads already exist.

    Raises
    ------
    SandboxUnavailable
        If the kernel does not support it, and unsandboxed processes are not allowed.
    """
    lacking = missing()
    if lacking and not rules.allow_unsandboxed:
        raise SandboxUnavailable(
            "The service runs no ONNX model and reads no set where their process cannot be locked "
            f"in: the kernel lacks {' and '.join(lacking)}; {HOW_TO_ALLOW}."
        )
    if not is_linux():
        return
    try:
        _lock_down(rules, lacking, uses_cuda=uses_cuda)
    except (LockdownFailed, OSError, ValueError) as error:
        raise SandboxUnavailable(
            f"The process for the ONNX model or the set could not be locked in: {error}."
        ) from error


def _lock_down(rules: SandboxRules, lacking: tuple[str, ...], *, uses_cuda: bool) -> None:
    from service.child.lockdown.resource_limits import (  # noqa: PLC0415 - it needs Linux
        limit_resources,
    )

    threads = len(list(Path("/proc/self/task").iterdir()))
    if threads > 1 and not uses_cuda:
        raise LockdownFailed(f"{threads} threads are running")
    limit_resources(
        memory_bytes=rules.memory_bytes, file_bytes=rules.file_bytes, uses_cuda=uses_cuda
    )
    gain_no_privileges()
    drop_capabilities()
    if LANDLOCK not in lacking:
        restrict_files(readable(uses_cuda=uses_cuda), devices(uses_cuda=uses_cuda))
    if SECCOMP not in lacking:
        filter_system_calls()

"""What a model's process may read: its libraries, and what tells of the machine's processors."""

import os
import sys
import sysconfig
from pathlib import Path

import service

PACKAGES = ("site-packages", "dist-packages")
# What is shared by programs of the system; the loader looks here for what a library needs.
SYSTEM = tuple(map(Path, ("/lib", "/lib64", "/usr/lib", "/usr/lib64", "/usr/local/lib")))
LOADER = (Path("/etc/ld.so.cache"),)
PROCESSORS = tuple(
    map(Path, ("/proc/cpuinfo", "/sys/devices/system/cpu", "/sys/devices/system/node"))
)
# What CUDA looks at is written down nowhere; it is loaded before, and may need these later.
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

    Not all of ``sys.path``: it may name a folder that holds anything.
    """
    of_python = [sysconfig.get_path(name) for name in ("stdlib", "platstdlib")]
    installed = [path for path in sys.path if Path(path).name in PACKAGES]
    own = Path(service.__file__ or "").resolve().parent
    return [*map(Path, of_python), *map(Path, installed), own, *SYSTEM, *LOADER]


def readable(*, uses_cuda: bool) -> list[Path]:
    """Return all that may be read, on a device."""
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

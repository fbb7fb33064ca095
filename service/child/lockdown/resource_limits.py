"""What a model's process may take of the machine."""

import os
import resource
from pathlib import Path

MOST_OPEN_FILES = 64
PAGE = resource.getpagesize()
CGROUP_LIMIT = Path("/sys/fs/cgroup/memory.max")


def limit_resources(*, memory_bytes: int, file_bytes: int, uses_cuda: bool) -> None:
    """Set the limits, which cannot be raised again.

    Parameters
    ----------
    memory_bytes
        Address space on top of what is in use, which is the libraries and the model's companions;
        0 is as much as the machine has memory. Not with CUDA, whose driver reserves far more
        addresses than it uses.
    file_bytes
        Largest file; there are none but those in memory.
    """
    _limit(resource.RLIMIT_CORE, 0)  # it would hold what others' rows are
    if uses_cuda:
        return
    _limit(resource.RLIMIT_NOFILE, MOST_OPEN_FILES)
    _limit(resource.RLIMIT_FSIZE, file_bytes)
    _limit(resource.RLIMIT_AS, address_space() + (memory_bytes or machine_memory()))


def address_space() -> int:
    """Return the bytes of addresses that this process has in use."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    return pages * PAGE


def machine_memory() -> int:
    """Return the bytes of memory of the machine, or of the group that this process is in."""
    physical = os.sysconf("SC_PHYS_PAGES") * PAGE
    try:
        return min(physical, int(CGROUP_LIMIT.read_text()))
    except (OSError, ValueError):  # no such group, or `max`
        return physical


def _limit(kind: int, most: int) -> None:
    _, hard = resource.getrlimit(kind)
    if hard != resource.RLIM_INFINITY:
        most = min(most, hard)
    resource.setrlimit(kind, (most, most))

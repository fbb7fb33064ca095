"""Limits of a child's memory and files."""

import os
import resource
from pathlib import Path

MOST_OPEN_FILES = 64
PAGE = resource.getpagesize()
CGROUP_LIMIT = Path("/sys/fs/cgroup/memory.max")


def limit_resources(*, memory_bytes: int, file_bytes: int, uses_cuda: bool) -> None:
    """Set limits, which the process cannot raise again.

    Parameters
    ----------
    memory_bytes
        Address space beyond that in use, which holds the libraries and the model's companion
        files; 0 means half the memory of the machine. Not set with CUDA, whose driver reserves far
        more addresses than it uses.
    file_bytes
        Largest file; a child can create files in memory only.
    """
    _limit(resource.RLIMIT_CORE, 0)  # a core dump would hold rows of tenants
    if uses_cuda:
        return
    _limit(resource.RLIMIT_NOFILE, MOST_OPEN_FILES)
    _limit(resource.RLIMIT_FSIZE, file_bytes)
    _limit(resource.RLIMIT_AS, address_space() + (memory_bytes or machine_memory() // 2))


def address_space() -> int:
    """Return the bytes of address space that this process uses."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    return pages * PAGE


def machine_memory() -> int:
    """Return the bytes of memory of the machine, or of the process's cgroup if that has less."""
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

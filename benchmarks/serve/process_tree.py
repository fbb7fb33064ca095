"""CPU time and memory of a process and its descendants, from /proc."""

import contextlib
import os
from pathlib import Path

TICKS = os.sysconf("SC_CLK_TCK")
PROC = Path("/proc")
MODEL_PROCESS = b"-m\0service.child"
# Fields of /proc/PID/stat behind the name: parent, and user and system time of the process and of
# its children that have been waited for.
PARENT = 1
TIMES = slice(11, 15)


def tree(root: int) -> list[int]:
    """Return the process and its running descendants, parents first."""
    below: dict[int, list[int]] = {}
    for folder in PROC.glob("[0-9]*"):
        with contextlib.suppress(OSError):
            below.setdefault(int(_stat(int(folder.name))[PARENT]), []).append(int(folder.name))
    found = [root]
    for pid in found:
        found += below.get(pid, [])
    return found


def cpu_seconds(root: int) -> float:
    """Return user and system time of all, including ended children."""
    ticks = 0
    for pid in tree(root):
        with contextlib.suppress(OSError):
            ticks += sum(map(int, _stat(pid)[TIMES]))
    return ticks / TICKS


def pss_mib(root: int) -> float:
    """Return memory, with shared pages divided among their processes (PSS)."""
    return sum(_kib(pid, "smaps_rollup", "Pss:") for pid in tree(root)) / 1024


def rss_mib(root: int) -> float:
    """Return resident memory, with shared pages counted in each process (RSS)."""
    return sum(_kib(pid, "status", "VmRSS:") for pid in tree(root)) / 1024


def model_processes(root: int) -> list[int]:
    """Return the descendants that run models."""
    found = []
    for pid in tree(root)[1:]:
        with contextlib.suppress(OSError):
            if MODEL_PROCESS in (PROC / str(pid) / "cmdline").read_bytes():
                found.append(pid)
    return found


def waits(pid: int) -> int:
    """Return how often all threads of a process have waited; 0 if the process is gone."""
    counted = 0
    for status in (PROC / str(pid)).glob("task/*/status"):
        with contextlib.suppress(OSError):
            for line in status.read_text().splitlines():
                if line.startswith("voluntary_ctxt_switches:"):
                    counted += int(line.split()[1])
    return counted


def _stat(pid: int) -> list[str]:
    # The name, in parentheses, may hold anything.
    return (PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()


def _kib(pid: int, file: str, key: str) -> int:
    with contextlib.suppress(OSError):
        for line in (PROC / str(pid) / file).read_text().splitlines():
            if line.startswith(key):
                return int(line.split()[1])
    return 0

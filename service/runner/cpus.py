"""How many processors this process may really use."""

import os
from pathlib import Path

CGROUPS = Path("/sys/fs/cgroup")
OWN_CGROUP = Path("/proc/self/cgroup")
UNIFIED = "0::"


def usable_cpus() -> int:
    """Return the processors allowed by affinity and by the container's quota, at least 1."""
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    quota = cgroup_quota(CGROUPS, _own_group())
    return max(1, min(allowed or 1, int(quota) if quota else allowed or 1))


def cgroup_quota(root: Path, group: str) -> float | None:
    """Return the least quota, in processors, of a cgroup (version 2) and those above it."""
    quotas: list[float] = []
    folder = root / group.lstrip("/")
    for level in (folder, *folder.parents):
        quotas.extend(_quota(level / "cpu.max"))
        if level == root:
            break
    return min(quotas, default=None)


def _quota(file: Path) -> list[float]:
    try:
        most, period = file.read_text().split()
        return [] if most == "max" else [int(most) / int(period)]
    except (OSError, ValueError):
        return []


def _own_group() -> str:
    try:
        lines = OWN_CGROUP.read_text().splitlines()
    except OSError:
        return ""
    return next((line.removeprefix(UNIFIED) for line in lines if line.startswith(UNIFIED)), "")

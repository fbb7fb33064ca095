"""Time as it passes on a machine of our own: without what the host of a virtual one takes from it.

A bound on how long an answer may take is one on the service. Where a host gives the processors to
other machines for a second, nothing here could have answered in that second.
"""

import os
import time
from pathlib import Path

STAT = Path("/proc/stat")
# Of a processor's line, behind its name: user, nice, system, idle, iowait, irq, softirq, steal.
STEAL = 8


def stolen_seconds() -> dict[str, float]:
    """Return by processor how long it was taken away since the machine started."""
    if not STAT.exists():
        return {}
    lines = (line.split() for line in STAT.read_text().splitlines() if line.startswith("cpu"))
    ticks = os.sysconf("SC_CLK_TCK")
    # The first line is of all processors together.
    return {words[0]: int(words[STEAL]) / ticks for words in lines if words[0] != "cpu"}


class Stopwatch:
    """Begins when it is made."""

    def __init__(self) -> None:
        self._began, self._stolen = time.monotonic(), stolen_seconds()

    def seconds(self) -> float:
        """Return how long it is since then, without what was stolen where most was."""
        elapsed = time.monotonic() - self._began
        now = stolen_seconds()
        return elapsed - max((now[cpu] - before for cpu, before in self._stolen.items()), default=0)

"""Processor seconds that a child may take, renewed by whoever asks it; Linux alone can."""

import os
import sys
import time
from contextlib import suppress

# One request to the kernel serves all questions of so long.
RENEWED_SECONDS = 60.0
# The kernel's number of a process's clock of processor time, from its id.
CLOCK_OF_PROCESS = 2


class ProcessorTime:
    """A limit a little ahead of what a child can use before its parent must have acted.

    The clock on the wall ends what takes too long, by its parent's hand. This ends a child that
    computes while its parent does nothing, because that was stopped or is stuck: the kernel
    kills it (SIGXCPU), and the lock-down lets no child move the limit.
    """

    def __init__(self, pid: int, *, renewed_seconds: float = RENEWED_SECONDS) -> None:
        self._pid = pid
        self._renewed_seconds = renewed_seconds
        self._enough_until = 0.0

    def allow(self, seconds: float) -> None:
        """Let the child compute for so long from now on, on every processor there is.

        To be called while the child is not yet reaped: its id may be another's then.
        """
        now = time.monotonic()
        if now + seconds <= self._enough_until or sys.platform != "linux":
            return
        # Linux alone has it.
        import resource  # noqa: PLC0415

        span = seconds + self._renewed_seconds
        # One that died just now is none of our business here.
        with suppress(OSError):
            used = time.clock_gettime((~self._pid << 3) | CLOCK_OF_PROCESS)
            most = int(used + span * (os.cpu_count() or 1)) + 1
            _, hard = resource.prlimit(self._pid, resource.RLIMIT_CPU)
            if hard == resource.RLIM_INFINITY or most < hard:
                resource.prlimit(self._pid, resource.RLIMIT_CPU, (most, hard))
            self._enough_until = now + span

"""End a child process when its parent ends."""

import ctypes
import os
import signal
import sys
from contextlib import suppress
from pathlib import Path

PR_SET_PDEATHSIG = 1
FIRST_TO_GO = "1000"


def exit_with_parent(parent: int) -> None:
    """Have the kernel kill this process when its parent dies, and first if memory runs out.

    A run that never ends would not notice that the parent closed the socket. On other systems than
    Linux the child notices it between two requests.
    """
    if sys.platform != "linux":
        return
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_PDEATHSIG) failed")
    if os.getppid() != parent:
        os._exit(0)  # it died before the call above
    with suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text(FIRST_TO_GO)

"""What a piece of work holds in memory, without what other threads of the tests hold."""

import os
import sys
import traceback
import tracemalloc
import warnings
from collections.abc import Callable


def peak_of(work: Callable[[], object]) -> int:
    """Return the most bytes that Python holds while ``work`` runs in a fork of this process."""
    reading, writing = os.pipe()
    with warnings.catch_warnings():
        # Other threads do not come along, which is what the fork is for.
        warnings.simplefilter("ignore", DeprecationWarning)
        pid = os.fork()
    if pid == 0:
        status = 1
        try:
            tracemalloc.start()
            work()
            os.write(writing, str(tracemalloc.get_traced_memory()[1]).encode())
            status = 0
        except BaseException:  # noqa: BLE001 - nothing of the tests may go on in this process
            traceback.print_exc(file=sys.__stderr__)
        finally:
            os._exit(status)
    os.close(writing)
    with os.fdopen(reading) as told:
        peak = told.read()
    _, status = os.waitpid(pid, 0)
    assert status == 0, "the work failed; its traceback stands in the standard error"
    return int(peak)

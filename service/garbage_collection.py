"""Full garbage collections while few objects are alive.

A full collection stops all threads for a time that grows with the number of objects alive: a
hundred milliseconds with a few large documents.
"""

import asyncio
import gc
import sys

from service.http.worker_threads import Lane

EVERY_SECONDS = 0.1
# Collections of young objects since the last full one; each stands for about 7,000 new objects.
DUE = 10
OVERDUE = 200
# Of a wait for the end of all calls, meanwhile no other begins.
PATIENCE_SECONDS = 1.0
NEVER = 2**31 - 1
# Threads that compute give way to the event loop after this time; Python's default is 5 ms.
SWITCH_SECONDS = 0.001


def postpone_full_collections() -> None:
    """Let a server process collect only young objects automatically.

    Objects that are alive now stay, and are not scanned again.
    """
    gc.collect()
    gc.freeze()
    young, middle, _ = gc.get_threshold()
    gc.set_threshold(young, middle, NEVER)
    sys.setswitchinterval(SWITCH_SECONDS)


async def collect_garbage(documents: Lane) -> None:
    """Collect everything whenever it is due and no call of the lane of large documents runs.

    If this takes too long, wait for the running calls before others begin.
    """
    while True:
        await asyncio.sleep(EVERY_SECONDS)
        young = gc.get_count()[2]
        if young >= DUE and not documents.running:
            gc.collect()
        elif young >= OVERDUE:
            async with documents.paused(PATIENCE_SECONDS):
                gc.collect()

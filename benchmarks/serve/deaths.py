"""Kill a model's process repeatedly under load."""

import asyncio
import os
import signal
import time
from dataclasses import dataclass, field

import numpy as np

from serve.checked import UNAVAILABLE, Client, Tally, known_questions
from serve.networks import Network
from serve.process_tree import model_processes, waits
from serve.server_process import ServerProcess

KNOWN = 60
WATCH_SECONDS = 0.1
BUSY_WAITS = 5
RIGHT_BETWEEN = 20
OUTAGE_SECONDS = 60.0


@dataclass
class Deaths:
    """The responses, and the seconds from each kill to the next right answer.

    That answer is to a request that was sent after the kill.
    """

    outages: list[float] = field(default_factory=list)
    tally: Tally = field(default_factory=Tally)

    @property
    def holds(self) -> bool:
        """Whether every response was a right answer, or a 503 with ``Retry-After``."""
        tally = self.tally
        return (
            tally.right > 0
            and tally.wrong == tally.others(200, UNAVAILABLE) == tally.without_retry_after == 0
        )


class Recovery:
    """Waits for right answers to requests sent after a moment."""

    def __init__(self) -> None:
        self._since = 0.0
        self._left = 0
        self.first = asyncio.Event()
        self.enough = asyncio.Event()

    def begin(self, now: float) -> None:
        """Count from now."""
        self._since, self._left = now, RIGHT_BETWEEN
        self.first.clear()
        self.enough.clear()

    def answered(self, asked_at: float, is_right: bool) -> None:  # noqa: FBT001 - a callback
        """Count an answer."""
        if is_right and asked_at >= self._since:
            self.first.set()
            self._left -= 1
            if self._left <= 0:
                self.enough.set()


async def deaths(
    server: ServerProcess, network: Network, *, kills: int, connections: int = 8, seed: int = 0
) -> Deaths:
    """Kill the process this often, each time after some right answers since the last kill.

    Raises
    ------
    TimeoutError
        If no right answer comes for a minute.
    """
    asked = await known_questions(server.address, network, KNOWN, np.random.default_rng(seed))
    found, stop, recovery = Deaths(), asyncio.Event(), Recovery()
    async with asyncio.TaskGroup() as group:
        for i in range(connections):
            client = Client(server.address, found.tally, recovery.answered)
            group.create_task(client.ask_until(stop, asked, i * KNOWN // connections))
        try:
            for _ in range(kills):
                os.kill(await _busiest(server.pid), signal.SIGKILL)
                began = asyncio.get_running_loop().time()
                recovery.begin(began)
                await asyncio.wait_for(recovery.first.wait(), OUTAGE_SECONDS)
                found.outages.append(asyncio.get_running_loop().time() - began)
                await asyncio.wait_for(recovery.enough.wait(), OUTAGE_SECONDS)
        finally:
            stop.set()
    return found


async def _busiest(server: int) -> int:
    """Return the model's serving process: it waits most often, a starting one computes."""
    until = time.monotonic() + OUTAGE_SECONDS
    while time.monotonic() < until:
        before = {pid: waits(pid) for pid in model_processes(server)}
        await asyncio.sleep(WATCH_SECONDS)
        waited = {pid: waits(pid) - counted for pid, counted in before.items()}
        busiest = max(waited, key=lambda pid: waited[pid], default=None)
        if busiest is not None and waited[busiest] >= BUSY_WAITS:
            return busiest
    raise TimeoutError("no model process is asked anything")

"""Load on a server: closed loops, and an open loop that does not wait for responses."""

import asyncio
import resource
import time
from collections import Counter
from collections.abc import Container, Sequence
from dataclasses import dataclass, field

import numpy as np

from serve.connection import Connection

PATIENCE_SECONDS = 30.0
NO_ANSWER = 0
OK = 200


@dataclass
class Load:
    """Status and seconds of each request; status 0 means no response."""

    seconds: float = 0.0
    offered: float = 0.0  # requests sent a second
    statuses: list[int] = field(default_factory=list)
    latencies: list[float] = field(default_factory=list)

    def add(self, status: int, latency: float) -> None:
        """Count one request."""
        self.statuses.append(status)
        self.latencies.append(latency)

    @property
    def goodput(self) -> float:
        """Return responses with status 200, per second."""
        return self.statuses.count(OK) / self.seconds

    @property
    def failed(self) -> int:
        """Return the number of requests without a response of status 200."""
        return len(self.statuses) - self.statuses.count(OK)

    def counts(self) -> Counter[int]:
        """Return the count of each status."""
        return Counter(self.statuses)

    def quantiles(self, *levels: float, statuses: Container[int] = (OK,)) -> list[float]:
        """Return quantiles of the seconds of responses with these statuses; NaN without any."""
        pairs = zip(self.latencies, self.statuses, strict=True)
        found = [seconds for seconds, status in pairs if status in statuses]
        return np.quantile(found, levels).tolist() if found else [float("nan")] * len(levels)


async def closed_loop(
    address: str, requests: Sequence[bytes], *, connections: int, seconds: float
) -> Load:
    """Keep one request in flight on each connection."""
    load = Load()
    begin = time.perf_counter()

    async def client(number: int) -> None:
        connection = await Connection.open(address)
        while (start := time.perf_counter()) - begin < seconds:
            request = requests[number % len(requests)]
            number += connections
            try:
                answer = await asyncio.wait_for(connection.ask(request), PATIENCE_SECONDS)
            except (ConnectionError, TimeoutError):
                load.add(NO_ANSWER, time.perf_counter() - start)
                connection.close()
                connection = await Connection.open(address)
            else:
                load.add(answer.status, time.perf_counter() - start)
        connection.close()

    await asyncio.gather(*(client(i) for i in range(connections)))
    load.seconds = time.perf_counter() - begin
    load.offered = len(load.statuses) / load.seconds
    return load


async def open_loop(
    address: str,
    requests: Sequence[bytes],
    *,
    rate: float,
    seconds: float,
    generator: np.random.Generator,
) -> Load:
    """Send requests at Poisson times, independent of earlier responses.

    Latency counts from the time a request was due, so that a server that stalls cannot hide it.
    """
    allow_many_sockets()
    due = np.cumsum(generator.exponential(1 / rate, size=max(1, round(rate * seconds))))
    load, idle, last_good = Load(), list[Connection](), 0.0
    begin = time.perf_counter()

    async def send(number: int, at: float) -> None:
        nonlocal last_good
        connection = None
        try:
            connection = idle.pop() if idle else await Connection.open(address)
            request = requests[number % len(requests)]
            answer = await asyncio.wait_for(connection.ask(request), PATIENCE_SECONDS)
        except (OSError, TimeoutError):
            load.add(NO_ANSWER, time.perf_counter() - at)
            if connection is not None:
                connection.close()
        else:
            now = time.perf_counter()
            load.add(answer.status, now - at)
            if answer.status == OK:
                last_good = now - begin
            if connection.is_open:
                idle.append(connection)

    async with asyncio.TaskGroup() as group:
        for number, offset in enumerate(due):
            at = begin + float(offset)
            if (ahead := at - time.perf_counter()) > 0:
                await asyncio.sleep(ahead)
            group.create_task(send(number, at))
        sending = time.perf_counter() - begin
    # What was answered after the last request was sent took its time, too.
    load.seconds = max(sending, last_good)
    load.offered = len(due) / sending
    for connection in idle:
        connection.close()
    return load


def allow_many_sockets() -> None:
    """Raise this process's limit of open files as far as allowed."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))

"""A service that gets more requests than it can answer."""

import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from serve.load import OK, Load, closed_loop, open_loop
from serve.networks import Network
from serve.payloads import Write
from serve.server_process import ServerProcess

LEVELS = (1, 2, 4, 8, 16, 32, 64)
DISTINCT = 64
REFUSALS = (429, 503, 504)
BELOW, ABOVE = 0.7, 5.0


@dataclass
class Overload:
    """Answers per second by connections, and open loops at 0.7 and 5 times their maximum."""

    levels: dict[int, float]
    below: Load
    above: Load
    own_share: float

    @property
    def knee(self) -> float:
        """Return the maximum of answers per second in closed loops."""
        return max(self.levels.values())

    @property
    def kept(self) -> float:
        """Return the share of that maximum that remains at five times the load."""
        return self.above.goodput / self.knee

    @property
    def unexpected(self) -> int:
        """Return the number of requests that were neither answered nor refused."""
        counts = self.below.counts() + self.above.counts()
        return sum(counts[status] for status in counts if status not in (OK, *REFUSALS))

    def holds(self, *, kept: float, refusal_seconds: float) -> bool:
        """Return whether enough remains, refusals are fast and nothing else happened."""
        (slow,) = self.above.quantiles(0.99, statuses=REFUSALS)
        soon = not slow > refusal_seconds  # NaN without refusals
        return self.kept >= kept and soon and not self.unexpected and not self.below.failed


async def overload(
    server: ServerProcess,
    network: Network,
    *,
    write: Write,
    seconds: float,
    levels: Sequence[int] = LEVELS,
    seed: int = 0,
) -> Overload:
    """Find the knee, then load the service with less and with more."""
    generator = np.random.default_rng(seed)
    address, rows = server.address, network.rows(DISTINCT, seed=seed + 1)
    requests = [write(network.name, rows[i : i + 1]).wire(address) for i in range(DISTINCT)]
    await closed_loop(address, requests, connections=levels[-1], seconds=min(1, seconds))
    found = {}
    for connections in levels:
        load = await closed_loop(address, requests, connections=connections, seconds=seconds)
        found[connections] = load.goodput
    knee = max(found.values())

    async def at(rate: float) -> Load:
        return await open_loop(address, requests, rate=rate, seconds=seconds, generator=generator)

    below = await at(BELOW * knee)
    began, used = time.perf_counter(), time.process_time()
    above = await at(ABOVE * knee)
    own_share = (time.process_time() - used) / (time.perf_counter() - began)
    return Overload(found, below, above, own_share)

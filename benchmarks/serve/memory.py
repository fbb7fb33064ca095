"""Resident memory under a steady load with malformed requests and clients that disconnect."""

import asyncio
import json
from collections import Counter
from dataclasses import dataclass, field

import httpx
import numpy as np

from serve.checked import Client, Question, Tally, known_questions
from serve.leavers import WAYS, leave, typical_seconds
from serve.networks import Network
from serve.payloads import JSON, OIP_LENGTH, Payload, in_json, in_npy
from serve.process_tree import rss_mib
from serve.server_process import ServerProcess

KNOWN = 120
SAMPLE_SECONDS = 2.0
PAUSE_SECONDS = 0.05  # of a client that leaves or asks nonsense
WARM_SHARE = 0.25
TEN_MINUTES = 600.0


@dataclass
class Memory:
    """MiB by seconds, the slope after the warm-up, and the responses."""

    seconds: list[float] = field(default_factory=list)
    rss: list[float] = field(default_factory=list)
    tally: Tally = field(default_factory=Tally)
    bad: Counter[int] = field(default_factory=Counter)
    left: Counter[str] = field(default_factory=Counter)

    @property
    def warm(self) -> int:
        """Return the first sample after the warm-up."""
        return int(len(self.rss) * WARM_SHARE)

    @property
    def slope(self) -> float:
        """Return MiB per ten minutes, by least squares."""
        return (
            float(np.polyfit(self.seconds[self.warm :], self.rss[self.warm :], 1)[0]) * TEN_MINUTES
        )

    @property
    def answers_hold(self) -> bool:
        """Whether all valid requests got right answers, and malformed ones a 4xx."""
        tally = self.tally
        refused = all(map(httpx.codes.is_client_error, self.bad))
        return tally.right > 0 and tally.others(200) == tally.wrong == 0 and refused


async def memory(
    server: ServerProcess, network: Network, *, seconds: float, clients: int = 4, seed: int = 0
) -> Memory:
    """Load the service for this time and measure the memory of all its processes."""
    generator = np.random.default_rng(seed)
    asked = await known_questions(server.address, network, KNOWN, generator)
    typical = await typical_seconds(server.address, asked)
    found, stop = Memory(), asyncio.Event()
    async with asyncio.TaskGroup() as group:
        for i in range(clients):
            client = Client(server.address, found.tally)
            group.create_task(client.ask_until(stop, asked, i * KNOWN // clients))
        group.create_task(_leave(server.address, asked, typical, generator, stop, found.left))
        group.create_task(_ask_nonsense(server.address, network, stop, found.bad))
        try:
            await _watch(server.pid, seconds, found)
        finally:
            stop.set()
    return found


def nonsense(network: Network) -> list[Payload]:
    """Return requests that each break a different rule."""
    rows = network.rows(2, seed=5)
    not_finite = rows.copy()
    not_finite.flat[3] = np.nan
    infer = f"/v2/models/{network.name}/infer"
    fine = in_npy(network.name, rows)
    return [
        Payload("json", "/predict", JSON, b'{"calibration": "x", "inputs": [[1, 2'),
        Payload("json", "/predict", JSON, json.dumps({"calibration": network.name}).encode()),
        in_json("unknown", rows),
        in_json(network.name, rows.reshape(2, -1)[:, :7]),
        in_npy(network.name, not_finite),
        Payload("npy", fine.path, fine.headers, fine.body[:-9]),
        Payload("oip", infer, JSON, b'{"inputs": []}'),
        Payload("oip", infer, {OIP_LENGTH: "99999"}, b"{}"),
    ]


async def _watch(pid: int, seconds: float, found: Memory) -> None:
    loop = asyncio.get_running_loop()
    began = loop.time()
    while (passed := loop.time() - began) < seconds:
        found.seconds.append(passed)
        found.rss.append(await asyncio.to_thread(rss_mib, pid))
        await asyncio.sleep(min(SAMPLE_SECONDS, seconds / 10))


async def _leave(
    address: str,
    asked: list[Question],
    typical: float,
    generator: np.random.Generator,
    stop: asyncio.Event,
    left: Counter[str],
) -> None:
    number = 0
    while not stop.is_set():
        number += 1
        question, way = asked[number % len(asked)], WAYS[number % len(WAYS)]
        await leave(address, question, way, float(generator.uniform(0, typical)), left)
        await asyncio.sleep(PAUSE_SECONDS)


async def _ask_nonsense(
    address: str, network: Network, stop: asyncio.Event, statuses: Counter[int]
) -> None:
    requests = [Question(payload, payload.wire(address), []) for payload in nonsense(network)]
    number = 0
    while not stop.is_set():
        client = Client(address, Tally())
        await client.ask(requests[number % len(requests)])
        statuses.update(client.tally.statuses)
        client.close()
        number += 1
        await asyncio.sleep(PAUSE_SECONDS)

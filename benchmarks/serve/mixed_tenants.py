"""Several tenants on the same connections, each with a model of its own under the same name."""

import asyncio
import dataclasses
from dataclasses import dataclass

import numpy as np

from serve.checked import Client, Question, Tally, alone, questions
from serve.networks import Network
from serve.payloads import SERVICE_FORMATS, Payload, Write

ROWS = 300
MOST_ROWS = 4


@dataclass(frozen=True)
class Tenant:
    """A tenant's API key and its model."""

    key: str
    network: Network

    def writes(self) -> dict[str, Write]:
        """Return the formats of requests, with the key."""
        return {name: self._with_key(write) for name, write in SERVICE_FORMATS.items()}

    def _with_key(self, write: Write) -> Write:
        def with_key(calibration: str, rows: np.ndarray) -> Payload:
            payload = write(calibration, rows)
            headers = {**payload.headers, "Authorization": f"Bearer {self.key}"}
            return dataclasses.replace(payload, headers=headers)

        return with_key


async def mixed_tenants(
    address: str, tenants: list[Tenant], *, clients: int, seconds: float, seed: int
) -> Tally:
    """Let each client send requests of all tenants over one connection, in a random order.

    All tenants send the same rows; a response of another tenant's model is a wrong one.
    """
    generator = np.random.default_rng(seed)
    rows = tenants[0].network.rows(ROWS, seed=int(generator.integers(1 << 31)))
    asked: list[Question] = []
    known: set[str] = set()
    for tenant in tenants:
        writes = tenant.writes()
        answers = await alone(address, tenant.network, rows, write=writes["npy"])
        if (said := repr(answers)) in known:
            raise SystemExit("two tenants' models answer alike")
        known.add(said)
        for most_rows in (1, MOST_ROWS):
            asked += questions(
                address,
                tenant.network,
                rows,
                answers,
                generator,
                most_rows=most_rows,
                writes=list(writes.values()),
            )
    tally, stop = Tally(), asyncio.Event()
    async with asyncio.TaskGroup() as group:
        for _ in range(clients):
            order = [asked[i] for i in generator.permutation(len(asked))]
            group.create_task(Client(address, tally).ask_until(stop, order, 0))
        await asyncio.sleep(seconds)
        stop.set()
    return tally

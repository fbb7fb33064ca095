"""Two tenants, one of which asks for fifty times what it may: the other is to notice little."""

import asyncio
import itertools
import multiprocessing
import random
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import Executor, ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import httpx
import numpy as np
from running_service import calibrate, digits

from fault_plan.figures import Figures
from fault_plan.site import Site
from service.access.api_keys import SCOPES, create_key, limit_tenant, make_pepper
from service.storage.database import Database, open_database
from service.storage.schema import upgrade

QUOTA = 40
TIMES_ITS_QUOTA = 50
CONNECTIONS = 16
QUIET_REQUESTS_PER_SECOND = 50
OK, TOO_MANY = int(httpx.codes.OK), int(httpx.codes.TOO_MANY_REQUESTS)
# Of a quota: what a limiter lets through beyond it, and what falls into a window that slides.
SLACK = 1.02
WITHIN_SECONDS = 5.0


@dataclass
class Asked:
    """What a client was answered: statuses, seconds and refusals that do not say when to come."""

    statuses: Counter[int] = field(default_factory=Counter)
    seconds: list[float] = field(default_factory=list)
    n_unsaid: int = 0

    def percentile(self, share: float) -> float:
        """Return in milliseconds what so many of the answers took at most."""
        return round(1000 * float(np.quantile(self.seconds, share)), 2)


def noisy_neighbour(
    folder: Path, *, times: int = 3, seed: int = 0, seconds: float = 20.0, ratio: float | None = 2.0
) -> Figures:
    """Let one tenant flood, ``times`` for so many seconds, after as long without.

    ``ratio`` bounds the 99th percentile of the other's answers by what it was without; None: it is
    told and not judged.
    """
    figures = Figures("noisy-neighbour", seed)
    site = Site(folder)
    upgrade(site.database_url)
    with _database(site) as database:
        flooding, quiet = (_key(site, database, name) for name in ("flooding", "quiet"))
        limit_tenant(database, "flooding", {"requests_per_second": QUOTA})
        limit_tenant(database, "quiet", {"requests_per_second": 0})
    with site.serving() as client:
        for key in (flooding, quiet):
            _calibrate(client, key)
        rng = random.Random(seed)
        # The flood comes from a process of its own: to make it takes time, which is not to be
        # taken from who measures.
        with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as other:
            other.submit(_flood, site.port, flooding, 0.0, seed).result()
            runs = [
                asyncio.run(_run(site.port, (flooding, quiet), seconds, rng, other))
                for _ in range(times)
            ]
    for number, (idle, beside, flood, took) in enumerate(runs):
        _check(figures, number, (idle, beside, flood), took, ratio)
    return figures


def _check(
    figures: Figures,
    number: int,
    asked: tuple[Asked, Asked, Asked],
    seconds: float,
    ratio: float | None,
) -> None:
    idle, beside, flood = asked
    before, after = idle.percentile(0.99), beside.percentile(0.99)
    sent, passed = flood.statuses.total(), flood.statuses[OK]
    figures.fired += flood.statuses[TOO_MANY]
    figures.more[f"run_{number}"] = {
        "idle_p50_p99_ms": [idle.percentile(0.5), before],
        "beside_p50_p99_ms": [beside.percentile(0.5), after],
        "ratio": round(after / before, 2),
        "flood_per_second": round(sent / seconds),
        "passed_per_second": round(passed / seconds, 1),
    }
    for who in (idle, beside):
        if set(who.statuses) != {OK}:
            figures.violations.append(f"the neighbour was answered {dict(who.statuses)}")
    if set(flood.statuses) - {OK, TOO_MANY} or not flood.statuses[TOO_MANY]:
        figures.violations.append(f"the flood was answered {dict(flood.statuses)}")
    if flood.n_unsaid:
        figures.violations.append(f"{flood.n_unsaid} refusals did not say when to come again")
    if passed > SLACK * QUOTA * (seconds + 1) + 1:
        figures.violations.append(f"{passed} of the flood passed in {seconds:.1f} s")
    if ratio is not None:
        if sent < 0.9 * QUOTA * TIMES_ITS_QUOTA * seconds:
            figures.violations.append(f"a flood of {sent} in {seconds:.1f} s is none to judge by")
        if after >= ratio * before:
            figures.violations.append(f"the neighbour's p99 went from {before} to {after} ms")


async def _run(
    port: int, keys: tuple[str, str], seconds: float, rng: random.Random, other: Executor
) -> tuple[Asked, Asked, Asked, float]:
    """Return what the neighbour was answered without the flood and beside it, and the flood."""
    flooding, quiet = keys
    rate = QUIET_REQUESTS_PER_SECOND
    idle, beside = Asked(), Asked()
    await _ask(port, quiet, idle, rate=rate, seconds=seconds, rng=rng)
    began = time.perf_counter()
    flood = asyncio.get_running_loop().run_in_executor(
        other, _flood, port, flooding, seconds, rng.random()
    )
    await _ask(port, quiet, beside, rate=rate, seconds=seconds, rng=rng)
    return idle, beside, await flood, time.perf_counter() - began


def _flood(port: int, key: str, seconds: float, seed: float) -> Asked:
    asked, rng = Asked(), random.Random(seed)
    rate = QUOTA * TIMES_ITS_QUOTA / CONNECTIONS

    async def flood() -> None:
        await asyncio.gather(
            *(
                _ask(port, key, asked, rate=rate, seconds=seconds, rng=rng)
                for _ in range(CONNECTIONS)
            )
        )

    asyncio.run(flood())
    return asked


async def _ask(
    port: int, key: str, asked: Asked, *, rate: float, seconds: float, rng: random.Random
) -> None:
    """Ask at this rate on a connection; an answer is timed from when its request was due.

    So a request that had to wait for the one before it is late, and not left out.
    """
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    request = _request(key)
    start = time.perf_counter() + rng.random() / rate
    try:
        for number in itertools.count():
            due = start + number / rate
            if due > start + seconds:
                return
            left = due - time.perf_counter()
            if left > 0:
                await asyncio.sleep(left)
            writer.write(request)
            head = (await reader.readuntil(b"\r\n\r\n")).lower()
            length = head.partition(b"content-length: ")[2].partition(b"\r\n")[0]
            await reader.readexactly(int(length))
            status = int(head[9:12])
            asked.statuses[status] += 1
            asked.seconds.append(time.perf_counter() - due)
            if status == TOO_MANY and b"\r\nretry-after: " not in head:
                asked.n_unsaid += 1
    finally:
        writer.close()


def _request(key: str) -> bytes:
    row = ",".join(["1.5"] * 64)
    body = f'{{"calibration":"digits","inputs":[[{row}]]}}'
    return (
        f"POST /predict HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer {key}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n{body}"
    ).encode()


def _calibrate(client: httpx.Client, key: str) -> None:
    client.headers["Authorization"] = f"Bearer {key}"
    until = time.monotonic() + WITHIN_SECONDS
    while client.get("/calibrations").status_code != OK:
        assert time.monotonic() < until, "the service does not know the key"
        time.sleep(0.1)
    parts = {"model": digits("model.onnx"), "calibration": digits("calibration.npz")}
    made = calibrate(client, config='{"name": "digits"}', **parts)
    assert made.json()["status"] == "succeeded", made.text
    # The model is loaded, and the head of requests known, before anything is timed.
    rows = {"calibration": "digits", "inputs": [[1.5] * 64]}
    assert client.post("/predict", json=rows).status_code == OK


def _key(site: Site, database: Database, tenant: str) -> str:
    pepper = make_pepper("", site.data)
    made = create_key(database, pepper, name="test", tenant=tenant, scopes=tuple(SCOPES), days=1)
    return made.text


@contextmanager
def _database(site: Site) -> Iterator[Database]:
    opened = open_database(site.database_url)
    try:
        yield opened
    finally:
        opened.dispose()

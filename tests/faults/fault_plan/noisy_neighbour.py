"""One of two tenants sends many times its limit; the other must notice little."""

import asyncio
import json
import multiprocessing
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import httpx
import numpy as np
from hot_fronts import post
from keyed_service import KeyedService
from runner_children import wait_until
from running_service import DIGITS_PARTS, calibrated
from serve.load import Load, open_loop

from fault_plan.figures import Figures
from fault_plan.site import Site
from service.access.api_keys import limit_tenant
from service.settings import Settings
from service.storage.schema import upgrade

BODY = {"calibration": "digits", "inputs": [[1.5] * 64]}
QUOTA = 40
QUIET_REQUESTS_PER_SECOND = 50
OK, TOO_MANY = int(httpx.codes.OK), int(httpx.codes.TOO_MANY_REQUESTS)
# Of a quota: what a limiter lets through beyond it, and what falls into a window that slides.
SLACK = 1.02


def noisy_neighbour(
    folder: Path,
    *,
    times: int = 3,
    seed: int = 0,
    seconds: float = 20.0,
    excess: float = 50.0,
    ratio: float | None = 2.0,
) -> Figures:
    """Let one tenant flood, ``times`` for so many seconds, after as long without.

    The flood is ``excess`` times what the tenant may ask. ``ratio`` bounds the 99th percentile of
    the other's answers by what it was without; None: it is told and not judged.
    """
    figures = Figures("noisy-neighbour", seed)
    site = Site(folder)
    keyed = KeyedService(
        Settings(_env_file=None, data_dir=site.data, database_url=site.database_url)
    )
    upgrade(site.database_url)
    flooding, quiet = (keyed.make(tenant).text for tenant in ("flooding", "quiet"))
    with keyed.database() as database:
        limit_tenant(database, "flooding", {"requests_per_second": QUOTA})
        limit_tenant(database, "quiet", {"requests_per_second": 0})
    flood = (site.port, flooding, QUOTA * excess)
    neighbour = (site.port, quiet, QUIET_REQUESTS_PER_SECOND)
    with site.serving() as client:
        for key in (flooding, quiet):
            _calibrate(client, key)
        # The flood has its own process, so that it does not slow the measuring process.
        with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as other:
            other.submit(_ask, *flood, seconds=0.0, seed=seed).result()
            for number in range(times):
                idle = _ask(*neighbour, seconds=seconds, seed=seed)
                flooded = other.submit(_ask, *flood, seconds=seconds, seed=seed)
                beside = _ask(*neighbour, seconds=seconds, seed=seed + 1)
                loads = (idle, beside, flooded.result())
                _check(figures, number, loads, ratio)
                if ratio is not None and loads[-1].offered < 0.9 * QUOTA * excess:
                    figures.violate(f"run {number}: fewer requests than planned")
    return figures


def _check(figures: Figures, number: int, loads: Sequence[Load], ratio: float | None) -> None:
    idle, beside, flood = loads
    before, after = (load.quantiles(0.99)[0] for load in (idle, beside))
    answers = flood.counts()
    figures.fired += answers[TOO_MANY]
    figures.more[f"run_{number}"] = {
        "p99_idle_ms": round(1000 * before, 2),
        "p99_beside_ms": round(1000 * after, 2),
        "flood_per_second": round(flood.offered),
        "passed_per_second": round(flood.goodput, 1),
    }
    broken = {
        "the neighbour was refused": {*idle.statuses, *beside.statuses} != {OK},
        "the flood was answered otherwise": answers.keys() != {OK, TOO_MANY},
        "the flood passed": answers[OK] > SLACK * QUOTA * (flood.seconds + 1) + 1,
    }
    if ratio is not None:
        broken["the neighbour's p99 rose"] = after >= ratio * before
    figures.violations += [
        f"run {number}: {what}" for what, is_broken in broken.items() if is_broken
    ]


def _ask(port: int, key: str, rate: float, *, seconds: float, seed: int) -> Load:
    """Ask at this rate, whatever became of earlier requests."""
    body = json.dumps(BODY).encode()
    headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
    asking = open_loop(
        f"127.0.0.1:{port}",
        [post("/predict", body, **headers)],
        rate=rate,
        seconds=seconds,
        generator=np.random.default_rng(seed),
    )
    return asyncio.run(asking)


def _calibrate(client: httpx.Client, key: str) -> None:
    client.headers["Authorization"] = f"Bearer {key}"
    assert wait_until(lambda: client.get("/calibrations").status_code == OK)  # the key is known
    calibrated(client, {"name": "digits"}, **DIGITS_PARTS)
    # The model is loaded, and the head of requests known, before anything is timed.
    assert client.post("/predict", json=BODY).status_code == OK

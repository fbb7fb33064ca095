"""``kill -9`` of a random one of two Dask workers, at any moment of their jobs."""

import random
import time
from pathlib import Path

import httpx
from dask_cluster import DaskCluster

from fault_plan.checker import WORKER_DIED, Checker, check_files
from fault_plan.figures import Figures
from fault_plan.published import run_undisturbed
from fault_plan.site import Site
from fault_plan.traffic import Reader, Traffic, Uploader
from fault_plan.uploads import Ledger, mixed_uploads

WORKERS = 2
UNFINISHED = 3
SHARD_SECONDS = 60.0
# Seconds from a worker's first shard.
STRIKE_SECONDS = 0.3
# Result of a shard whose workers died one after the other.
MODEL_CRASHED = "urn:howsure:problem:onnx-model-crashed"


def kill_dask_worker(folder: Path, *, times: int = 100, seed: int, copies: int = 40) -> Figures:
    """Kill one of them ``times`` times while clients upload, and start another each time."""
    figures, generator = Figures("kill-dask-worker", seed), random.Random(seed)
    folder.mkdir(parents=True, exist_ok=True)
    shared = {"artifacts_url": str(folder / "data" / "artifacts"), "device": "cpu", "threads": "1"}
    with DaskCluster(folder, **shared) as cluster:
        workers = [cluster.add_worker() for _ in range(WORKERS)]
        site = Site(folder, scheduler=cluster.address, shard_resources="CORE=1")
        ledger, uploads = Ledger(), mixed_uploads(copies)
        with site.serving() as client:
            undisturbed = run_undisturbed(client, site.database_url, uploads)
            reader = Reader(undisturbed)
            uploader = Uploader(ledger, uploads, unfinished=UNFINISHED)
            with Traffic(site, figures, [uploader, reader]):
                for _ in range(times):
                    _wait_for_shards(cluster)
                    time.sleep(generator.uniform(0, STRIKE_SECONDS))
                    running, is_busy = _running(client), _is_busy(cluster)
                    place = generator.randrange(WORKERS)
                    cluster.kill(workers[place])
                    killed_at = time.monotonic()
                    figures.strike(["shards" if is_busy else "no shard"])
                    workers[place] = cluster.add_worker()
                    _wait_until_ended(client, running)
                    figures.recovery_seconds.append(time.monotonic() - killed_at)
            reasons = (WORKER_DIED, MODEL_CRASHED)
            Checker(site, ledger, undisturbed, figures, reasons=reasons).check(client)
        check_files(site, figures)
    figures.more |= {"job_s": round(undisturbed.job_seconds, 2), "looked": reader.looked}
    return figures


def _is_busy(cluster: DaskCluster) -> bool:
    return any(cluster.client.processing().values())


def _wait_for_shards(cluster: DaskCluster) -> None:
    until = time.monotonic() + SHARD_SECONDS
    while not _is_busy(cluster):
        assert time.monotonic() < until, "no shard was given to a Dask worker"


def _running(client: httpx.Client) -> list[str]:
    answer = client.get("/calibrations", params={"status": "running"})
    return [found["id"] for found in answer.json()["calibrations"]]


def _wait_until_ended(client: httpx.Client, calibrations: list[str]) -> None:
    until = time.monotonic() + SHARD_SECONDS
    while set(calibrations) & set(_running(client)) and time.monotonic() < until:
        time.sleep(0.05)

"""``kill -9`` of a process, at any moment of its jobs, while clients upload."""

import random
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx
from dask_cluster import DaskCluster
from runner_children import wait_until

from fault_plan.checker import WORKER_DIED, check_files, of_ledger
from fault_plan.figures import Figures
from fault_plan.load import under_load
from fault_plan.site import Site, end, kill
from fault_plan.stored_jobs import StoredJob, half_visible, stored_jobs
from fault_plan.traffic import unfinished
from fault_plan.uploads import mixed_uploads

UPLOADERS = 2
WORKERS = 2
# Share of kills that wait for a job to begin; the others happen at any time, also in uploads.
AT_JOBS = 0.75
CLAIM_SECONDS = 30.0
POLL_SECONDS = 0.1
# Seconds from a Dask worker's first shard.
STRIKE_SECONDS = 0.3
# Result of a shard whose workers died one after the other.
MODEL_CRASHED = "urn:howsure:problem:onnx-model-crashed"


def _load(copies: int) -> dict[str, Any]:
    """Return how many clients upload, and how many jobs they leave unfinished."""
    return {"uploaders": UPLOADERS, "unfinished": UPLOADERS + WORKERS if copies else WORKERS}


def await_job(running: Callable[[], object], seconds: float) -> None:
    """Return ``seconds`` after a job began or, if it ends before, when the next one begins."""
    assert wait_until(running), "no job began"
    time.sleep(seconds)
    assert wait_until(running), "no other job began"


def kill_server(folder: Path, *, times: int = 200, seed: int, copies: int = 20) -> Figures:
    """Kill the one serving process on SQLite ``times`` times, and start it again each time."""
    figures, generator = Figures("kill-server", seed), random.Random(seed)
    site = Site(folder, workers=str(WORKERS))
    process = site.serve()
    try:
        with (
            site.client() as client,
            under_load(site, client, mixed_uploads(copies), figures, **_load(copies)) as load,
        ):
            for _ in range(times):
                at_job = generator.random() < AT_JOBS
                seconds = generator.uniform(0, load.undisturbed.job_seconds)
                if at_job:
                    await_job(lambda: unfinished(client, "running"), seconds)
                else:
                    time.sleep(seconds)
                killed_at = time.monotonic()
                kill(process)
                jobs = stored_jobs(site.database_url)
                figures.strike(job.stage or "claimed" for job in jobs if job.status == "running")
                figures.violations += half_visible(of_ledger(jobs), load.undisturbed.rows)
                process = site.serve()
                figures.recovery_seconds.append(time.monotonic() - killed_at)
    finally:
        end(process)
    check_files(site, figures)
    return figures


def kill_worker(
    folder: Path, *, times: int = 200, seed: int, copies: int = 20, database_url: str
) -> Figures:
    """Kill one of two workers on PostgreSQL ``times`` times, and start another each time."""
    figures, generator = Figures("kill-worker", seed), random.Random(seed)
    site, recoveries = Site(folder, database_url), _Recoveries(database_url, figures)
    steps = {"steps": [recoveries], **_load(copies)}
    with ExitStack() as running:
        workers = [site.start("worker") for _ in range(WORKERS)]
        running.callback(lambda: [end(worker) for worker in workers])  # those of later, too
        client = running.enter_context(site.serving("--no-worker"))
        clients = under_load(site, client, mixed_uploads(copies), figures, **steps)
        load = running.enter_context(clients)
        for _ in range(times):
            place = generator.randrange(WORKERS)
            worker = workers[place]

            def held() -> list[StoredJob]:
                return [job for job in stored_jobs(database_url) if job.is_of(worker.pid)]  # noqa: B023 - called at once

            # To kill it before its first job would test nothing.
            await_job(held, generator.uniform(0, load.undisturbed.job_seconds))
            kill(worker)
            recoveries.expect(held())
            figures.strike(job.stage or "claimed" for job in held())
            jobs = of_ledger(stored_jobs(database_url))
            figures.violations += half_visible(jobs, load.undisturbed.rows)
            workers[place] = site.start("worker")
        recoveries.wait()
    check_files(site, figures)
    return figures


class _Recoveries:
    """Measures, while others go on, how long the jobs of the dead wait for another worker."""

    def __init__(self, database_url: str, figures: Figures) -> None:
        self._database_url = database_url
        self._figures = figures
        self._waiting: list[tuple[StoredJob, float]] = []

    def expect(self, jobs: Sequence[StoredJob]) -> None:
        """Note jobs whose owner has just died."""
        self._waiting.extend((job, time.monotonic()) for job in jobs)

    def __call__(self, _: httpx.Client) -> None:
        if waiting := list(self._waiting):
            owners = {job.id: job.owner for job in stored_jobs(self._database_url)}
            for job, since in waiting:
                if owners.get(job.id) != job.owner:
                    self._figures.recovery_seconds.append(time.monotonic() - since)
                    self._waiting.remove((job, since))
        time.sleep(POLL_SECONDS)

    def wait(self) -> None:
        """Wait for the last jobs."""
        wait_until(lambda: not self._waiting, seconds=CLAIM_SECONDS)
        for job, _ in self._waiting:
            self._figures.violations.append(f"nobody took {job.name} from its dead worker")


def kill_dask_worker(folder: Path, *, times: int = 100, seed: int, copies: int = 40) -> Figures:
    """Kill one of two Dask workers ``times`` times, and start another each time."""
    figures, generator = Figures("kill-dask-worker", seed), random.Random(seed)
    folder.mkdir(parents=True, exist_ok=True)
    shared = {"artifacts_url": str(folder / "data" / "artifacts"), "device": "cpu", "threads": "1"}
    with DaskCluster(folder, **shared) as cluster:

        def is_busy() -> bool:
            return any(cluster.client.processing().values())

        workers = [cluster.add_worker() for _ in range(WORKERS)]
        site = Site(folder, scheduler=cluster.address, shard_resources="CORE=1")
        options = {"unfinished": 3, "reasons": (WORKER_DIED, MODEL_CRASHED)}
        with (
            site.serving() as client,
            under_load(site, client, mixed_uploads(copies), figures, **options),
        ):
            for _ in range(times):
                assert wait_until(is_busy), "no shard was given to a Dask worker"
                time.sleep(generator.uniform(0, STRIKE_SECONDS))
                running = unfinished(client, "running")
                figures.strike(["shards" if is_busy() else "no shard"])
                place = generator.randrange(WORKERS)
                cluster.kill(workers[place])
                killed_at = time.monotonic()
                workers[place] = cluster.add_worker()
                wait_until(lambda: not running & unfinished(client, "running"))  # noqa: B023 - as above
                figures.recovery_seconds.append(time.monotonic() - killed_at)
        check_files(site, figures)
    return figures

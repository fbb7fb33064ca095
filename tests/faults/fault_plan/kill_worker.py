"""``kill -9`` of a random one of two workers on PostgreSQL, at any moment of its jobs."""

import random
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from howsure_command import Command
from postgres_server import PostgresServer

from fault_plan.checker import Checker, check_files, wait_until_quiet
from fault_plan.figures import Figures
from fault_plan.ledger import Ledger
from fault_plan.published import run_undisturbed
from fault_plan.recoveries import Recoveries
from fault_plan.site import Site, end, kill
from fault_plan.stored_jobs import StoredJob, half_visible, is_of, running_jobs, stored_jobs
from fault_plan.traffic import Reader, Traffic, Uploader
from fault_plan.uploads import mixed_uploads

UPLOADERS = 2
WORKERS = 2
CLAIM_SECONDS = 30.0


def kill_worker(
    folder: Path, *, times: int = 200, seed: int, copies: int = 20, database_url: str = ""
) -> Figures:
    """Kill one of them ``times`` times while clients upload, and start another each time."""
    if not database_url:
        with PostgresServer() as server:
            return kill_worker(
                folder, times=times, seed=seed, copies=copies, database_url=server.url
            )
    figures, generator = Figures("kill-worker", seed), random.Random(seed)
    site = Site(folder, database_url)
    uploads = mixed_uploads(copies)
    ledger, traffic, recoveries = Ledger(site.ledger_path), Traffic(), Recoveries(database_url)
    with _workers(site) as workers, site.serving("--no-worker") as client:
        undisturbed = run_undisturbed(client, database_url, uploads)
        reader = Reader(undisturbed)
        uploader = Uploader(ledger, uploads, unfinished=UPLOADERS + WORKERS)
        for step in [uploader] * UPLOADERS + [reader]:
            traffic.add(site, step)
        with traffic, recoveries:
            for _ in range(times):
                place = generator.randrange(WORKERS)
                _wait_until_it_works(database_url, workers[place])
                time.sleep(generator.uniform(0, undisturbed.job_seconds))
                kill(workers[place])
                figures.fired += 1
                jobs = stored_jobs(database_url)
                held = [job for job in jobs if is_of(workers[place].pid, job.owner)]
                recoveries.expect(held)
                figures.struck.update([job.stage or "claimed" for job in held] or ["no job"])
                figures.violations += half_visible(_of_ledger(jobs), undisturbed.rows)
                workers[place] = site.start("worker")
        figures.more["drained_s"] = round(wait_until_quiet(client), 1)
        Checker(site, undisturbed, figures).check(client)
    check_files(site, figures)
    figures.recovery_seconds = recoveries.seconds
    figures.more |= {"job_s": round(undisturbed.job_seconds, 2), "looked": reader.looked}
    figures.violations += [*reader.violations, *traffic.failures, *recoveries.never()]
    return figures


@contextmanager
def _workers(site: Site) -> Iterator[list[Command]]:
    """Run workers, which may be replaced, until the block ends."""
    workers = [site.start("worker") for _ in range(WORKERS)]
    try:
        yield workers
    finally:
        for worker in workers:
            end(worker)


def _wait_until_it_works(database_url: str, worker: Command) -> None:
    """A worker that starts still has no job to lose: to kill it then would prove nothing."""
    until = time.monotonic() + CLAIM_SECONDS
    while not any(is_of(worker.pid, owner) for owner in running_jobs(database_url).values()):
        assert worker.poll() is None, f"a worker ended by itself: {worker.poll()}"
        assert time.monotonic() < until, "a worker claimed no job"
        time.sleep(0.05)


def _of_ledger(jobs: list[StoredJob]) -> list[StoredJob]:
    return [job for job in jobs if not job.name.endswith("undisturbed")]

"""``kill -9`` of a random one of two workers on PostgreSQL, at any moment of its jobs."""

import random
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import httpx
from howsure_command import Command

from fault_plan.checker import Checker, check_files, of_ledger
from fault_plan.figures import Figures
from fault_plan.published import run_undisturbed
from fault_plan.site import Site, end, kill
from fault_plan.stored_jobs import StoredJob, half_visible, stored_jobs
from fault_plan.traffic import Reader, Traffic, Uploader
from fault_plan.uploads import Ledger, mixed_uploads

UPLOADERS = 2
WORKERS = 2
CLAIM_SECONDS = 30.0
POLL_SECONDS = 0.1


def kill_worker(
    folder: Path, *, times: int = 200, seed: int, copies: int = 20, database_url: str
) -> Figures:
    """Kill one of them ``times`` times while clients upload, and start another each time."""
    figures, generator = Figures("kill-worker", seed), random.Random(seed)
    site, ledger, uploads = Site(folder, database_url), Ledger(), mixed_uploads(copies)
    recoveries = _Recoveries(database_url, figures)
    with _workers(site) as workers, site.serving("--no-worker") as client:
        undisturbed = run_undisturbed(client, database_url, uploads)
        reader = Reader(undisturbed)
        uploader = Uploader(ledger, uploads, unfinished=UPLOADERS + WORKERS)
        with Traffic(site, figures, [uploader] * UPLOADERS + [reader, recoveries]):
            for _ in range(times):
                place = generator.randrange(WORKERS)
                _wait_until_it_works(database_url, workers[place])
                time.sleep(generator.uniform(0, undisturbed.job_seconds))
                kill(workers[place])
                jobs = stored_jobs(database_url)
                held = [job for job in jobs if job.is_of(workers[place].pid)]
                recoveries.expect(held)
                figures.strike(job.stage or "claimed" for job in held)
                figures.violations += half_visible(of_ledger(jobs), undisturbed.rows)
                workers[place] = site.start("worker")
            recoveries.wait()
        Checker(site, ledger, undisturbed, figures).check(client)
    check_files(site, figures)
    figures.more |= {"job_s": round(undisturbed.job_seconds, 2), "looked": reader.looked}
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
        until = time.monotonic() + CLAIM_SECONDS
        while self._waiting and time.monotonic() < until:
            time.sleep(POLL_SECONDS)
        for job, _ in self._waiting:
            self._figures.violations.append(f"nobody took {job.name} from its dead worker")


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
    """Wait for a worker's first job: killing it before would test nothing."""
    until = time.monotonic() + CLAIM_SECONDS
    while not any(job.is_of(worker.pid) for job in stored_jobs(database_url)):
        assert worker.poll() is None, f"a worker ended by itself: {worker.poll()}"
        assert time.monotonic() < until, "a worker claimed no job"
        time.sleep(0.05)

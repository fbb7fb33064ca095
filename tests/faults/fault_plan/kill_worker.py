"""``kill -9`` of a random one of two workers on PostgreSQL, at any moment of its jobs."""

import random
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Self

from databases import PostgresServer
from howsure_command import Command

from fault_plan.checker import Checker, check_files, wait_until_quiet
from fault_plan.figures import Figures
from fault_plan.ledger import Ledger
from fault_plan.published import run_undisturbed
from fault_plan.site import Site, end, kill
from fault_plan.stored_jobs import StoredJob, half_visible, is_of, running_jobs, stored_jobs
from fault_plan.traffic import Reader, Traffic, Uploader
from fault_plan.uploads import mixed_uploads

UPLOADERS = 2
WORKERS = 2
CLAIM_SECONDS = 30.0
POLL_SECONDS = 0.1


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


class Recoveries:
    """Watches the jobs of the dead while others go on."""

    def __init__(self, database_url: str) -> None:
        self._database_url = database_url
        self._lock = threading.Lock()
        self._waiting: list[tuple[StoredJob, float]] = []
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._watch)
        self.seconds: list[float] = []

    def expect(self, jobs: Sequence[StoredJob]) -> None:
        """Note jobs whose owner has just died."""
        with self._lock:
            self._waiting += [(job, time.monotonic()) for job in jobs]

    def never(self) -> list[str]:
        """Return the jobs that nobody has taken."""
        return [f"nobody took {job.name} from its dead worker" for job, _ in self._waiting]

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        until = time.monotonic() + 30
        while self._waiting and time.monotonic() < until:
            time.sleep(POLL_SECONDS)
        self._stopping.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._stopping.wait(POLL_SECONDS):
            if self._waiting:
                self._look()

    def _look(self) -> None:
        owners = running_jobs(self._database_url)
        with self._lock:
            taken = [waits for waits in self._waiting if owners.get(waits[0].id) != waits[0].owner]
            self._waiting = [waits for waits in self._waiting if waits not in taken]
        self.seconds += [time.monotonic() - since for _, since in taken]


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
    while not any(is_of(worker.pid, owner) for owner in running_jobs(database_url).values()):
        assert worker.poll() is None, f"a worker ended by itself: {worker.poll()}"
        assert time.monotonic() < until, "a worker claimed no job"
        time.sleep(0.05)


def _of_ledger(jobs: list[StoredJob]) -> list[StoredJob]:
    return [job for job in jobs if not job.name.endswith("undisturbed")]

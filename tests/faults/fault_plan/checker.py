"""Compare the ledger with the database, the artifacts and live predictions."""

import time
from collections import Counter
from collections.abc import Iterable
from datetime import timedelta

import httpx
from databases import opened_database

from fault_plan.figures import Figures
from fault_plan.published import UNDISTURBED, Undisturbed, report_digest, tables_digest
from fault_plan.site import Site
from fault_plan.stored_jobs import StoredJob, artifact_keys, half_visible, stored_jobs
from fault_plan.traffic import unfinished
from fault_plan.uploads import Entry, Ledger
from service.storage.artifact_store import open_artifact_store
from service.storage.orphans import remove_orphans

QUIET_SECONDS = 600.0
WORKER_DIED = "urn:howsure:problem:worker-died"


class Checker:
    """Checks the rules after the faults; notes the outcome of the jobs and broken rules.

    ``reasons`` are the problem types with which a job may have failed.
    """

    def __init__(
        self,
        site: Site,
        ledger: Ledger,
        undisturbed: Undisturbed,
        figures: Figures,
        *,
        reasons: tuple[str, ...] = (WORKER_DIED,),
    ) -> None:
        self._site, self._ledger, self._undisturbed = site, ledger, undisturbed
        self._figures, self._reasons = figures, reasons

    def check(self, client: httpx.Client) -> None:
        """Check everything except the files, which `check_files` checks after the service ended."""
        wait_until_quiet(client, self._figures)
        jobs = {job.id: job for job in of_ledger(stored_jobs(self._site.database_url))}
        self._figures.violations += half_visible(list(jobs.values()), self._undisturbed.rows)
        self._count(self._ledger.entries, jobs)
        self._check_acknowledged(self._ledger.entries, jobs)
        self._check_unasked(self._ledger.entries, jobs)
        for job in jobs.values():
            self._check_end(client, job)

    def _count(self, entries: list[Entry], jobs: dict[str, StoredJob]) -> None:
        accepted = {entry.found["id"] for entry in entries if entry.is_accepted}
        self._figures.jobs = Counter(job.status for job in jobs.values()) + Counter(
            accepted=len(accepted),
            refused=sum(entry.status is not None and not entry.is_accepted for entry in entries),
            unanswered=sum(entry.status is None for entry in entries),
            replayed=sum(entry.replayed for entry in entries),
            kept_though_unanswered=len(jobs.keys() - accepted),
        )
        self._figures.more["statuses"] = dict(Counter(str(entry.status) for entry in entries))

    def _check_acknowledged(self, entries: list[Entry], jobs: dict[str, StoredJob]) -> None:
        for entry in entries:
            if entry.is_accepted and entry.found["id"] not in jobs:
                self._figures.violate(f"{entry.name} was accepted and is lost")
            if entry.status is not None and entry.status >= 500 and entry.status not in (503, 507):
                self._figures.violate(f"{entry.name} was answered {entry.status}: {entry.found}")

    def _check_unasked(self, entries: list[Entry], jobs: dict[str, StoredJob]) -> None:
        """Check that each calibration was requested, and exists once."""
        asked = {entry.name for entry in entries}
        kept = Counter(job.name for job in jobs.values())
        self._figures.violate(*(f"{name} was not asked for" for name in kept.keys() - asked))
        self._figures.violate(*(f"{name} is there {n} times" for name, n in kept.items() if n > 1))

    def _check_end(self, client: httpx.Client, job: StoredJob) -> None:
        if job.status == "failed":
            if job.error is None or job.error.get("type") not in self._reasons:
                self._figures.violate(f"{job.name} failed: {job.error}")
        elif job.status != "succeeded":
            self._figures.violate(f"{job.name} is still {job.status}, attempt {job.attempt}")
        else:
            if tables_digest(client, job.id) != self._undisturbed.tables[job.kind]:
                self._figures.violate(f"{job.name} has other tables than an undisturbed run")
            if report_digest(client, job.id) != self._undisturbed.reports[job.kind]:
                self._figures.violate(f"{job.name} has another report than an undisturbed run")


def check_files(site: Site, figures: Figures) -> None:
    """Check, after the service has ended, that artifacts and rows match.

    Orphans are swept first. No upload file and no temporary file may be left.
    """
    store = open_artifact_store(str(site.artifacts))
    rows = artifact_keys(site.database_url)
    missing = rows - set(store.keys())
    with opened_database(site.database_url) as database:
        swept = remove_orphans(database, store, older_than=timedelta(0))
    figures.more["orphans_swept"] = swept.removed
    unnamed = set(store.keys()) - rows
    figures.violations += sorted(f"there is a row and no file: {key}" for key in missing)
    figures.violations += sorted(f"there is a file and no row after a sweep: {k}" for k in unnamed)
    figures.violations += [f"left behind: {path}" for path in site.left_behind()]


def of_ledger(jobs: Iterable[StoredJob]) -> list[StoredJob]:
    """Return the jobs without those of undisturbed runs."""
    return [job for job in jobs if not job.name.endswith(UNDISTURBED)]


def wait_until_quiet(client: httpx.Client, figures: Figures) -> None:
    """Wait until every job has ended, and note how long that took."""
    began = time.monotonic()
    while unfinished(client) and time.monotonic() < began + QUIET_SECONDS:
        time.sleep(0.1)
    figures.more["drained_s"] = round(time.monotonic() - began, 1)

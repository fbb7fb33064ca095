"""The disk of uploads, artifacts or the database is full, during an upload or a job."""

import random
import time
from pathlib import Path
from typing import Any

import httpx

from fault_plan.asked import KnownAnswers
from fault_plan.checker import Checker, check_files, wait_until_quiet
from fault_plan.disks import DatabaseDisk, Disk, FileSizeLimit, SeveralDisks, small_disks
from fault_plan.figures import Figures
from fault_plan.ledger import Ledger
from fault_plan.published import run_undisturbed
from fault_plan.site import Site, end
from fault_plan.traffic import Traffic
from fault_plan.uploads import Upload, mixed_uploads

STORAGE_FULL = "urn:howsure:problem:storage-full"
PROBLEM = "application/problem+json"
FULL = int(httpx.codes.INSUFFICIENT_STORAGE)
# The full disk is to be met by who comes after.
FULL_SECONDS = 0.5
RECOVERY_SECONDS = 60.0
# Of the jobs that are met as they are about to publish.
LATE_SHARE = 0.5


def disk_full(folder: Path, *, times: int = 20, seed: int, copies: int = 8) -> Figures:
    """Fill each of the disks ``times`` times: before an upload, and in the middle of a job."""
    figures, generator = Figures("disk-full", seed), random.Random(seed)
    data = folder / "data"
    database = data / "database" / "howsure.sqlite3"
    with small_disks(data / "spool", data / "artifacts", database.parent) as disks:
        site = Site(folder, f"sqlite:///{database}")
        process = site.serve()
        try:
            if disks:
                disks["database"] = DatabaseDisk(database)
                disks["every disk"] = SeveralDisks(*disks.values())
            disks["file size limit"] = FileSizeLimit(process.pid)
            with site.client() as client:
                _fill_them(site, client, disks, figures, generator, times=times, copies=copies)
        finally:
            end(process)
        check_files(site, figures)
    return figures


def _fill_them(
    site: Site,
    client: httpx.Client,
    disks: dict[str, Disk],
    figures: Figures,
    generator: random.Random,
    *,
    times: int,
    copies: int,
) -> None:
    uploads = mixed_uploads(copies)
    undisturbed = run_undisturbed(client, site.database_url, uploads)
    answers, traffic = KnownAnswers(client, "inputs-undisturbed"), Traffic()
    traffic.add(site, answers.ask)
    struck = _Struck(site, client, figures, generator, undisturbed.job_seconds)
    with traffic:
        for _ in range(times):
            for name, disk in disks.items():
                upload = generator.choice(uploads)
                struck.before_upload(name, disk, upload)
                struck.during_job(name, disk, upload)
    figures.more["drained_s"] = round(wait_until_quiet(client), 1)
    Checker(site, undisturbed, figures, reasons=(STORAGE_FULL,)).check(client)
    figures.more["predictions"] = dict(answers.statuses)
    figures.violations += [*answers.violations, *traffic.failures]


class _Struck:
    """Fills a disk at a moment, frees it again, and notes what the service made of it."""

    def __init__(
        self,
        site: Site,
        client: httpx.Client,
        figures: Figures,
        generator: random.Random,
        job_seconds: float,
    ) -> None:
        self._site = site
        self._client = client
        self._ledger = Ledger(site.ledger_path)
        self._figures = figures
        self._generator = generator
        self._job_seconds = job_seconds

    def before_upload(self, name: str, disk: Disk, upload: Upload) -> None:
        """An upload that finds no room is refused, and leaves nothing; the next one is taken."""
        kept = self._kept()
        disk.fill()
        try:
            _, answer = upload.send_noted(self._client, self._ledger)
        finally:
            disk.free()
        self._figures.fired += 1
        self._figures.struck[f"upload, {name}"] += 1
        if answer is None or answer.status_code != FULL:
            self._violate(f"{name} full: {answer and answer.text}")
        elif answer.headers["content-type"] != PROBLEM or "retry-after" not in answer.headers:
            self._violate(f"{name} full: no problem that says when to come back: {answer.headers}")
        if self._kept() != kept:
            self._violate(f"{name} full: left behind {sorted(self._kept() - kept)}")

    def during_job(self, name: str, disk: Disk, upload: Upload) -> None:
        """A job that finds no room ends with that as its reason, or well once there is room."""
        entry, answer = upload.send_noted(self._client, self._ledger)
        if answer is None or answer.status_code != httpx.codes.ACCEPTED:
            self._violate(f"{entry.name} was not taken after {name} was freed: {answer}")
            return
        path = answer.headers["Location"]
        if self._generator.random() < LATE_SHARE:
            found = self._wait_for_tables(path)
        else:
            time.sleep(self._generator.uniform(0, self._job_seconds))
            found = self._client.get(path).json()
        disk.fill()
        self._figures.fired += 1
        stage = (found["progress"] or {}).get("stage", found["status"])
        self._figures.struck[f"job at {stage}, {name}"] += 1
        time.sleep(FULL_SECONDS)
        disk.free()
        freed_at = time.monotonic()
        while self._client.get(path).json()["status"] in ("queued", "running"):
            if time.monotonic() > freed_at + RECOVERY_SECONDS:
                self._violate(f"{entry.name} did not go on after {name} was freed")
                return
            time.sleep(0.05)
        self._figures.recovery_seconds.append(time.monotonic() - freed_at)

    def _wait_for_tables(self, path: str) -> dict[str, Any]:
        """Return the job once it is at its tables: to publish them it will find no room."""
        while True:
            found = self._client.get(path).json()
            if found["status"] != "queued" and not _is_recording(found):
                return found

    def _kept(self) -> set[str]:
        """Return all that is kept of uploads; a job's own files come and go."""
        roots = (self._site.artifacts, self._site.spool)
        return {
            str(path.relative_to(self._site.data))
            for root in roots
            for path in root.rglob("*")
            if path.is_file() and not path.name.startswith(".")
        }

    def _violate(self, found: str) -> None:
        self._figures.violations.append(found)


def _is_recording(found: dict[str, Any]) -> bool:
    stage = (found["progress"] or {}).get("stage")
    return found["status"] == "running" and stage in (None, "start", "calibration", "evaluation")

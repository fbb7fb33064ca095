"""The disk of uploads, artifacts or the database is full, during an upload or a job."""

import os
import random
import resource
import sqlite3
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any, Protocol

import httpx

from fault_plan.checker import Checker, check_files, wait_until_quiet
from fault_plan.figures import Figures
from fault_plan.ledger import Ledger
from fault_plan.published import run_undisturbed
from fault_plan.site import Site, end
from fault_plan.traffic import KnownAnswers, Traffic
from fault_plan.uploads import Upload, mixed_uploads

SIZE_BYTES = 32 * 1024**2
BALLAST = ".ballast"
STORAGE_FULL = "urn:howsure:problem:storage-full"
PROBLEM = "application/problem+json"
FULL = int(httpx.codes.INSUFFICIENT_STORAGE)
# Later requests must also find the disk full.
FULL_SECONDS = 0.5
RECOVERY_SECONDS = 60.0
# Share of the jobs that find the disk full when they publish.
LATE_SHARE = 0.5


class Disk(Protocol):
    """What takes no more, until it is freed."""

    def fill(self) -> None:
        """Leave room for nothing."""

    def free(self) -> None:
        """Leave room as before."""


class SmallDisk:
    """A file system of its own in memory, filled by a file."""

    def __init__(self, folder: Path) -> None:
        self._ballast = folder / BALLAST

    def fill(self) -> None:
        with self._ballast.open("ab", buffering=0) as file:
            for size in (2**20, 2**12, 1):
                try:
                    while file.write(bytes(size)):
                        pass
                except OSError:
                    continue

    def free(self) -> None:
        self._ballast.unlink()


class DatabaseDisk(SmallDisk):
    """The one of a SQLite file, whose log has room for many a write unless it is cut first."""

    def __init__(self, file: Path) -> None:
        super().__init__(file.parent)
        self._file = file

    def fill(self) -> None:
        with closing(sqlite3.connect(self._file, timeout=15)) as connection:
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        super().fill()


class FileSizeLimit:
    """A limit of the kernel on how far a process may write into a file: none at all."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._before = resource.prlimit(pid, resource.RLIMIT_FSIZE)

    def fill(self) -> None:
        _, hard = self._before
        resource.prlimit(self._pid, resource.RLIMIT_FSIZE, (0, hard))

    def free(self) -> None:
        resource.prlimit(self._pid, resource.RLIMIT_FSIZE, self._before)


class SeveralDisks:
    """All of them at once."""

    def __init__(self, *disks: Disk) -> None:
        self._disks = disks

    def fill(self) -> None:
        for disk in self._disks:
            disk.fill()

    def free(self) -> None:
        for disk in self._disks:
            disk.free()


@contextmanager
def small_disks(*folders: Path) -> Iterator[dict[str, Disk]]:
    """Mount a small file system on each folder; none where that is not allowed."""
    with ExitStack() as mounted:
        disks: dict[str, Disk] = {}
        for folder in folders:
            if not _mount(folder):
                break
            mounted.callback(subprocess.run, ["umount", "-l", str(folder)], check=True)
            disks[folder.name] = SmallDisk(folder)
        yield disks


def _mount(folder: Path) -> bool:
    folder.mkdir(parents=True, exist_ok=True)
    if os.geteuid() != 0:
        return False
    mount = ["mount", "-t", "tmpfs", "-o", f"size={SIZE_BYTES}", "tmpfs", str(folder)]
    return subprocess.run(mount, capture_output=True, check=False).returncode == 0


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
    """Fills a disk at some moment, frees it again, and records the behaviour of the service."""

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
        """Check that an upload without room is refused and leaves nothing; the next succeeds."""
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
        if left := self._kept() - kept:
            self._violate(f"{name} full: left behind {sorted(left)}")

    def during_job(self, name: str, disk: Disk, upload: Upload) -> None:
        """Check that a job fails for lack of room, or succeeds once there is room."""
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
        """Return the job once it computes its tables, before it publishes them without room."""
        while True:
            found = self._client.get(path).json()
            if found["status"] != "queued" and not _is_recording(found):
                return found

    def _kept(self) -> set[str]:
        """Return the stored files of uploads, without those of running jobs."""
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

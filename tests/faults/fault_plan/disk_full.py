"""The disk of uploads, artifacts or the database is full, during an upload or a job."""

import os
import random
import sqlite3
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import httpx
from own_process import file_size_limit
from runner_children import wait_until

from fault_plan.checker import check_files
from fault_plan.figures import Figures
from fault_plan.load import Load, under_load
from fault_plan.site import Site, end
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
RECORDING = ("queued", "running", "start", "calibration", "evaluation")
ENDED = ("succeeded", "failed", "cancelled")


# Fills a disk until the block ends.
Filled = Callable[[], AbstractContextManager[None]]


@contextmanager
def filled(folder: Path) -> Iterator[None]:
    """Fill a small file system with a file."""
    ballast = folder / BALLAST
    with ballast.open("ab", buffering=0) as file:
        for size in (2**20, 2**12, 1):
            with suppress(OSError):
                while file.write(bytes(size)):
                    pass
    try:
        yield
    finally:
        ballast.unlink()


@contextmanager
def filled_around(database: Path) -> Iterator[None]:
    """Fill the disk of a SQLite file, whose log has room for many a write unless it is cut."""
    with closing(sqlite3.connect(database, timeout=15)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    with filled(database.parent):
        yield


@contextmanager
def all_filled(disks: Sequence[Filled]) -> Iterator[None]:
    with ExitStack() as stack:
        for disk in disks:
            stack.enter_context(disk())
        yield


@contextmanager
def small_disks(*folders: Path) -> Iterator[list[Path]]:
    """Mount a small file system on each folder; none where that is not allowed."""
    with ExitStack() as mounted:
        disks = []
        for folder in folders:
            if not _mount(folder):
                break
            mounted.callback(subprocess.run, ["umount", "-l", str(folder)], check=True)
            disks.append(folder)
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
    with small_disks(data / "spool", data / "artifacts", database.parent) as mounted:
        site = Site(folder, f"sqlite:///{database}")
        process = site.serve()
        disks: dict[str, Filled] = {path.name: partial(filled, path) for path in mounted}
        if disks:
            disks["database"] = partial(filled_around, database)
            disks["every disk"] = partial(all_filled, list(disks.values()))
        disks["file size limit"] = partial(file_size_limit, 0, process.pid)
        uploads = mixed_uploads(copies)
        options = {"uploaders": 0, "unfinished": 0, "predictors": 1, "reasons": (STORAGE_FULL,)}
        try:
            with (
                site.client() as client,
                under_load(site, client, uploads, figures, **options) as load,
            ):
                struck = _Struck(site, client, figures, generator, load)
                for name, disk in [*disks.items()] * times:
                    upload = generator.choice(uploads)
                    struck.before_upload(name, disk, upload)
                    struck.during_job(name, disk, upload)
        finally:
            end(process)
        check_files(site, figures)
    return figures


@dataclass(frozen=True)
class _Struck:
    """Fills a disk at some moment, frees it again, and records the behaviour of the service."""

    site: Site
    client: httpx.Client
    figures: Figures
    generator: random.Random
    load: Load

    def before_upload(self, name: str, disk: Filled, upload: Upload) -> None:
        """Check that an upload without room is refused and leaves nothing; the next succeeds."""
        kept = self._kept()
        with disk():
            answer = self.load.ledger.note(upload).send(self.client)
        self.figures.strike([f"upload, {name}"])
        if answer is None or answer.status_code != FULL:
            self.figures.violate(f"{name} full: {answer and answer.text}")
        elif answer.headers["content-type"] != PROBLEM or "retry-after" not in answer.headers:
            self.figures.violate(
                f"{name} full: no problem that says when to come back: {answer.headers}"
            )
        if left := self._kept() - kept:
            self.figures.violate(f"{name} full: left behind {sorted(left)}")

    def during_job(self, name: str, disk: Filled, upload: Upload) -> None:
        """Check that a job fails for lack of room, or succeeds once there is room."""
        entry = self.load.ledger.note(upload)
        answer = entry.send(self.client)
        if answer is None or answer.status_code != httpx.codes.ACCEPTED:
            self.figures.violate(f"{entry.name} was not taken after {name} was freed: {answer}")
            return
        path = answer.headers["Location"]
        if self.generator.random() < LATE_SHARE:
            # Once it computes its tables, before it publishes them without room.
            wait_until(lambda: self._stage(path) not in RECORDING)
        else:
            time.sleep(self.generator.uniform(0, self.load.undisturbed.job_seconds))
        with disk():
            self.figures.strike([f"job at {self._stage(path)}, {name}"])
            time.sleep(FULL_SECONDS)
        freed_at = time.monotonic()
        if not wait_until(lambda: self._job(path)["status"] in ENDED, seconds=RECOVERY_SECONDS):
            self.figures.violate(f"{entry.name} did not go on after {name} was freed")
        self.figures.recovery_seconds.append(time.monotonic() - freed_at)

    def _job(self, path: str) -> dict[str, Any]:
        return self.client.get(path).json()

    def _stage(self, path: str) -> str:
        """Return the stage of a job that runs, or its status."""
        job = self._job(path)
        return (job["progress"] or {}).get("stage") or job["status"]

    def _kept(self) -> set[str]:
        """Return the stored files of uploads, without those of running jobs."""
        files = [*self.site.artifacts.rglob("*"), *self.site.spool.rglob("*")]
        return {str(path) for path in files if path.is_file() and not path.name.startswith(".")}

"""A service with keys and two tenants: one attacks it, the other is a neighbour.

It runs in this process, or as a `howsure serve` whose memory, processor time and log are measured
as well. Deadlines and limits are short, so that a case that reaches one does so soon.
"""

import json
import os
import re
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import httpx
import pytest
from databases import put_sqlite_file
from hostile_case import BETWEEN_SECONDS, MEBIBYTE, Attacker
from howsure_command import Command, ServedProcess
from keyed_service import KeyedService, keyed_service, logits_of
from runner_children import children, wait_until
from running_service import DIGITS_PARTS, calibrated, swept_files

from service.settings import Settings

SETTINGS: dict[str, Any] = {
    "load_timeout_seconds": 6.0,
    "run_timeout_seconds": 3.0,
    "predict_timeout_seconds": 8.0,
    "max_process_memory": 2048 * MEBIBYTE,
    "max_model_bytes": 8 * MEBIBYTE,
    "max_model_data_bytes": 8 * MEBIBYTE,
    "max_dataset_bytes": 128 * MEBIBYTE,
    "max_inflated_bytes": 256 * MEBIBYTE,
    "max_samples": 1_000_000,
    "max_classes": 10_000,
    "receive_seconds": 1.5,
    "threads": 1,
    "log_format": "json",
}
# Processor time of the service while one request of the neighbour waits.
GOOD_SECONDS = 1.0
LEFTOVER_SECONDS = 60.0
TICKS_A_SECOND = os.sysconf("SC_CLK_TCK")
# Of the service's own; what else is there came from a request.
OWN_FILES = re.compile(r"howsure\.sqlite3(-wal|-shm)?|serve\.log|key-pepper|spool/([^/]+/)?\.lock")


class TwoTenants:
    """The running service, with a look at its files.

    ``expected`` is what the neighbour sees, and has to see after each case.
    """

    def __init__(self, folder: Path, address: tuple[str, int], keys: list[str]) -> None:
        self.data, self.temporary = folder / "data", folder / "tmp"
        self.attacker, self.neighbour = (Attacker(address, key) for key in keys)

    def furnish(self) -> None:
        """Calibrate for both; the neighbour's own is the digits model."""
        for tenant in (self.neighbour, self.attacker):
            made = calibrated(tenant.client, {"name": "digits"}, **DIGITS_PARTS)
            tenant.calibration = made["id"]
        outputs = calibrated(self.attacker.client, {"name": "outputs"}, calibration=logits_of())
        self.attacker.outputs = outputs["id"]
        self.expected = self.seen()
        swept_files(self.data)
        self._kept = self.files()
        self._calibrations = set(self._of_attacker())

    def prediction(self) -> bytes:
        """Return what the neighbour is answered."""
        body = {"calibration": self.neighbour.calibration, "inputs": [[1.0] * 64]}
        return self.neighbour.predict(json.dumps(body).encode()).raise_for_status().content

    def seen(self, *, report: bool = True) -> dict[str, bytes]:
        """Return all that the neighbour sees; its report takes long."""
        get, parts = self.neighbour.client.get, {"prediction": self.prediction()}
        parts["listed"] = get("/calibrations").raise_for_status().content
        if report:
            answer = get("/report", params={"calibration": self.neighbour.calibration})
            parts["report"] = answer.raise_for_status().content
        return parts

    def files(self) -> list[str]:
        """Return every file that requests have left behind, here and in the temporary folder."""
        names = [
            path.relative_to(root).as_posix()
            for root in (self.data, self.temporary)
            for path in root.rglob("*")
            if not path.is_dir() or path.is_symlink()
        ]
        return sorted(name for name in names if not OWN_FILES.fullmatch(name))

    def clear(self) -> None:
        """Remove the calibrations that the attacker has made."""
        for calibration in self._of_attacker():
            if calibration not in self._calibrations:
                self.attacker.client.delete(f"/calibrations/{calibration}").raise_for_status()

    def leftovers(self) -> list[str]:
        """Return the files that are too many, or missing, once there was time to remove them."""
        swept_files(self.data)
        wait_until(lambda: self.files() == self._kept, seconds=LEFTOVER_SECONDS)
        return sorted(set(self.files()) ^ set(self._kept))

    def _of_attacker(self) -> list[str]:
        answer = self.attacker.client.get("/calibrations", params={"limit": 100})
        return [made["id"] for made in answer.raise_for_status().json()["calibrations"]]


class HostileService(TwoTenants):
    """The same in a process of its own, with a look at what that process takes and logs."""

    process: Command

    def is_alive(self) -> bool:
        return self.process.poll() is None

    def log(self) -> str:
        return (self.data / "serve.log").read_text()

    def reset_peak(self) -> int:
        """Begin to measure the most memory anew; return the bytes that are in use now."""
        Path(f"/proc/{self.process.pid}/clear_refs").write_text("5")
        return self.peak()

    def peak(self) -> int:
        """Return the most bytes in use at a time since then."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(re.search(r"VmHWM:\s+(\d+) kB", status)[1]) * 1024

    def processor_seconds(self) -> float:
        """Return the processor time of the service's own process so far."""
        return sum(_ticks(self.process.pid)[:2]) / TICKS_A_SECOND

    def all_processor_seconds(self) -> float:
        """Return the same with its children, those that have ended as well."""
        ticks = sum(_ticks(self.process.pid))
        for child in children(self.process.pid):
            with suppress(FileNotFoundError, ProcessLookupError):
                ticks += sum(_ticks(child)[:2])
        return ticks / TICKS_A_SECOND


@contextmanager
def watched(service: HostileService) -> Iterator[tuple[list[float], list[str]]]:
    """Ask for the neighbour's prediction again and again, from another thread, in the block.

    Yields the processor time that the service took while each request waited, and what was wrong.
    A service that is kept from answering by what it computes shows in that time; on a busy machine
    requests wait longer for no fault of its own.
    """
    seconds: list[float] = []
    wrong: list[str] = []
    ended = threading.Event()

    def ask() -> None:
        while not seconds or not ended.wait(BETWEEN_SECONDS):
            began = service.processor_seconds()
            try:
                if (answer := service.prediction()) != service.expected["prediction"]:
                    wrong.append(repr(answer))
            except httpx.HTTPError as error:
                wrong.append(repr(error))
            seconds.append(service.processor_seconds() - began)

    with ThreadPoolExecutor(1) as thread:
        asked = thread.submit(ask)
        try:
            yield seconds, wrong
        finally:
            ended.set()
            asked.result()


def _ticks(pid: int) -> list[int]:
    """Return what a process, and those of its children that were waited for, have computed."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return [int(field) for field in fields[11:15]]


@contextmanager
def two_tenants(folder: Path, **settings: Any) -> Iterator[TwoTenants]:
    """Run the service in this process."""
    with keyed_service(folder / "data", **SETTINGS | settings) as keyed:
        keys = [keyed.first.text, keyed.make_known("neighbour").text]
        with _furnished(TwoTenants(folder, keyed.address, keys)) as tenants:
            yield tenants


@contextmanager
def hostile_service(folder: Path, **settings: Any) -> Iterator[HostileService]:
    """Run the service as a process of its own, killed when the block ends."""
    data, temporary = folder / "data", folder / "tmp"
    for made in (data, temporary):
        made.mkdir()
    keyed = KeyedService(Settings(_env_file=None, data_dir=data))
    put_sqlite_file(keyed.settings.resolved_database_url())
    keys = [keyed.make(tenant).text for tenant in ("default", "neighbour")]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TMPDIR", str(temporary))
        options = {name: str(value) for name, value in (SETTINGS | settings).items()}
        served = ServedProcess(data, **options)
    with served as client:
        address = (client.base_url.host, client.base_url.port)
        service = HostileService(folder, address, keys)
        service.process = served.process
        with _furnished(service):
            yield service


@contextmanager
def _furnished(tenants: TwoTenants) -> Iterator[TwoTenants]:
    with tenants.attacker.client, tenants.neighbour.client:
        tenants.furnish()
        yield tenants
        tenants.clear()
        assert tenants.seen() == tenants.expected
        assert tenants.leftovers() == []

"""A service with keys and two tenants: one attacks it, the other is a neighbour.

It runs in this process, or as a `howsure serve` whose memory, processor time and log are measured
as well. Deadlines and limits are short, so that a case that reaches one does so soon.
"""

import hashlib
import os
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import httpx
import pytest
from databases import put_sqlite_file
from hostile_case import MEBIBYTE, Attacker
from howsure_command import Command, ServedProcess
from keyed_service import KeyedService, keyed_service, logits_of
from runner_children import children, wait_until
from running_service import DIGITS_PARTS, calibrated

from service.settings import Settings

OK = httpx.codes.OK
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
BETWEEN_SECONDS = 0.05
LEFTOVER_SECONDS = 60.0
CASES_A_REPORT = 10
TICKS_A_SECOND = os.sysconf("SC_CLK_TCK")
# Of the service's own; what else is there came from a request.
OWN_FILES = re.compile(r"howsure\.sqlite3(-wal|-shm)?|serve\.log|key-pepper|spool/([^/]+/)?\.lock")


@dataclass(frozen=True)
class View:
    """What a tenant sees of what is its own."""

    listed: bytes
    report: str
    prediction: bytes


@dataclass
class Neighbour:
    """The tenant beside the attacker, with a calibration of its own."""

    client: httpx.Client
    calibration: str = ""
    body: dict[str, Any] = field(default_factory=dict)

    def view(self) -> View:
        return View(self.listed(), self.report(), self.predict().content)

    def listed(self) -> bytes:
        answer = self.client.get("/calibrations")
        assert answer.status_code == OK, answer.text
        return answer.content

    def report(self) -> str:
        """Return the digest of the report."""
        answer = self.client.get("/report", params={"calibration": self.calibration})
        assert answer.status_code == OK, answer.text
        return hashlib.sha256(answer.content).hexdigest()

    def predict(self) -> httpx.Response:
        answer = self.client.post("/predict", json=self.body)
        assert answer.status_code == OK, answer.text
        return answer


class Watch:
    """Asks the neighbour's /predict again and again, from another thread, while the block runs.

    A service that is kept from answering by what it computes shows in the processor time that it
    takes while a request waits; on a busy machine requests wait longer for no fault of its own.
    """

    def __init__(
        self, neighbour: Neighbour, expected: View, processor_seconds: Callable[[], float]
    ) -> None:
        self._neighbour, self._expected = neighbour, expected
        self._processor_seconds = processor_seconds
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._ask)
        self.seconds: list[float] = []
        self.wrong: list[str] = []

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def _ask(self) -> None:
        while True:
            began = self._processor_seconds()
            try:
                answer = self._neighbour.predict()
            except (httpx.HTTPError, AssertionError) as error:
                self.wrong.append(repr(error))
            else:
                if answer.content != self._expected.prediction:
                    self.wrong.append(answer.text)
            self.seconds.append(self._processor_seconds() - began)
            if self._ended.wait(BETWEEN_SECONDS):
                return


class TwoTenants:
    """The running service, with a look at its files."""

    def __init__(self, folder: Path, address: tuple[str, int], keys: list[str]) -> None:
        self.data, self.temporary = folder / "data", folder / "tmp"
        self.attacker, neighbour = (Attacker(address, key) for key in keys)
        self.neighbour = Neighbour(neighbour.client)
        self._n_looks = 0

    def furnish(self) -> None:
        """Calibrate for both; the neighbour's own is the digits model."""
        neighbour, attacker = self.neighbour, self.attacker
        neighbour.calibration = calibrated(neighbour.client, {"name": "ours"}, **DIGITS_PARTS)["id"]
        neighbour.body = {"calibration": neighbour.calibration, "inputs": [[1.0] * 64]}
        attacker.calibration = calibrated(attacker.client, {"name": "digits"}, **DIGITS_PARTS)["id"]
        outputs = calibrated(attacker.client, {"name": "outputs"}, calibration=logits_of())
        attacker.outputs = outputs["id"]
        # What there is now has to be there after each case.
        self.expected = neighbour.view()
        self._kept = self.files()
        self._calibrations = set(self._of_attacker())

    def seen(self) -> View:
        """Return what the neighbour sees; the report, which takes long, is read now and then.

        All of it is compared once more when the service ends.
        """
        self._n_looks += 1
        report = self.expected.report
        if self._n_looks % CASES_A_REPORT == 0:
            report = self.neighbour.report()
        return View(self.neighbour.listed(), report, self.neighbour.predict().content)

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
        wait_until(lambda: self.files() == self._kept, seconds=LEFTOVER_SECONDS)
        return sorted(set(self.files()) ^ set(self._kept))

    def _of_attacker(self) -> list[str]:
        answer = self.attacker.client.get("/calibrations", params={"limit": 100})
        assert answer.status_code == OK, answer.text
        return [calibration["id"] for calibration in answer.json()["calibrations"]]


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
        assert tenants.neighbour.view() == tenants.expected
        assert tenants.leftovers() == []

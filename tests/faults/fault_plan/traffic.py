"""Clients during faults: uploaders, a reader that checks every response, and predictions."""

import itertools
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, Self

import httpx
from bins_documents import digits_set

from fault_plan.figures import Figures
from fault_plan.published import Undisturbed, tables_digest
from fault_plan.site import Site
from fault_plan.uploads import Entry, Ledger, Upload

AGAIN_SECONDS = 0.05
ANSWER_PAUSE_SECONDS = 0.01
UNFINISHED = ("queued", "running")
PAGE = 200
UNKNOWN = "unknown"


class Traffic:
    """Threads that continue through every fault until the block ends.

    Each step is called repeatedly with a client, and again later if the service is unreachable. At
    the end the figures have the ``violations`` of all steps.
    """

    def __init__(
        self, site: Site, figures: Figures, steps: Sequence[Callable[[httpx.Client], None]]
    ) -> None:
        self._site, self._figures, self._steps = site, figures, steps
        self._stopping = threading.Event()
        self._threads = [threading.Thread(target=self._repeat, args=(step,)) for step in steps]

    def _repeat(self, step: Callable[[httpx.Client], None]) -> None:
        with self._site.client() as client:
            while not self._stopping.is_set():
                try:
                    step(client)
                except httpx.TransportError:
                    self._stopping.wait(AGAIN_SECONDS)
                except Exception as error:  # noqa: BLE001 - told at the end, whatever it was
                    self._figures.violations.append(f"{type(step).__name__}: {error!r}")
                    return

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        for thread in self._threads:
            thread.join()
        for step in dict.fromkeys(self._steps):
            self._figures.violations += getattr(step, "violations", [])


class Uploader:
    """Keeps this many jobs unfinished, because a longer queue would only delay the end.

    Uploads without a response, or with 503, are sent again with the same key and must exist once.
    """

    def __init__(self, ledger: Ledger, uploads: Sequence[Upload], *, unfinished: int) -> None:
        self._ledger = ledger
        self._lock = threading.Lock()
        self._uploads = itertools.cycle(uploads)
        self._most = unfinished
        self._again: list[Entry] = []

    def __call__(self, client: httpx.Client) -> None:
        jobs = unfinished(client)
        if UNKNOWN in jobs or len(jobs) >= self._most:
            time.sleep(AGAIN_SECONDS)
            return
        with self._lock:
            entry = self._again.pop(0) if self._again else self._ledger.note(next(self._uploads))
        answer = entry.send(client)
        if answer is None or answer.status_code == httpx.codes.SERVICE_UNAVAILABLE:
            with self._lock:
                self._again.append(entry)
            time.sleep(AGAIN_SECONDS)


class Reader:
    """Reads every new calibration: it has published nothing or everything."""

    def __init__(self, undisturbed: Undisturbed) -> None:
        self._expected = undisturbed.tables
        self._seen: set[str] = set()
        self.violations: list[str] = []
        self.looked = 0

    def __call__(self, client: httpx.Client) -> None:
        answer = client.get("/calibrations", params={"limit": 50})
        if answer.status_code == httpx.codes.OK:
            for found in answer.json()["calibrations"]:
                if found["id"] not in self._seen and found["status"] not in ("failed", "cancelled"):
                    self._look(client, found)
        time.sleep(AGAIN_SECONDS)

    def _look(self, client: httpx.Client, found: dict[str, Any]) -> None:
        digest = tables_digest(client, found["id"])
        self.looked += 1
        is_ready = found["status"] == "succeeded"
        expected = self._expected[found["name"].rsplit("-", 1)[0]]
        if digest == "503":
            return
        # An unfinished job may have succeeded since, and then has published everything.
        if digest != expected and (is_ready or digest != str(int(httpx.codes.CONFLICT))):
            self.violations.append(f"{found['name']}, {found['status']}, showed {digest}")
        if is_ready:
            self._seen.add(found["id"])


class KnownAnswers:
    """Asks a calibration of the digits for some rows; the first answer is the right one."""

    def __init__(self, client: httpx.Client, reference: str) -> None:
        rows = digits_set("calibration")["inputs"][:4].tolist()
        self._body = {"calibration": reference, "inputs": rows}
        self._expected = client.post("/predict", json=self._body).json()["predictions"]
        self._lock = threading.Lock()
        self.statuses: Counter[str] = Counter()
        self.slowest = 0.0
        self.violations: list[str] = []

    def __call__(self, client: httpx.Client) -> None:
        """Ask once, and note whatever is not the right answer."""
        began = time.monotonic()
        answer = client.post("/predict", json=self._body)
        took = time.monotonic() - began
        with self._lock:
            self.statuses[str(answer.status_code)] += 1
            self.slowest = max(self.slowest, took)
        if answer.status_code != httpx.codes.OK or answer.json()["predictions"] != self._expected:
            self.violations.append(f"/predict was answered {answer.status_code}: {answer.text}")
        time.sleep(ANSWER_PAUSE_SECONDS)


def unfinished(client: httpx.Client, *statuses: str) -> set[str]:
    """Return the unfinished jobs, at most a page of each status; one if that is unknown."""
    jobs = set()
    for status in statuses or UNFINISHED:
        answer = client.get("/calibrations", params={"status": status, "limit": PAGE})
        if answer.status_code != httpx.codes.OK:
            return {UNKNOWN}
        jobs |= {calibration["id"] for calibration in answer.json()["calibrations"]}
    return jobs

"""Clients during faults: uploaders, a reader that checks every response, and predictions."""

import io
import itertools
import threading
import time
from collections import Counter
from collections.abc import Sequence
from typing import Self

import httpx
import numpy as np
from running_service import digits

from fault_plan.ledger import Entry, Ledger
from fault_plan.published import Undisturbed, tables_digest
from fault_plan.site import Site
from fault_plan.uploads import Upload

AGAIN_SECONDS = 0.05
ANSWER_PAUSE_SECONDS = 0.01
UNFINISHED = ("queued", "running")
PAGE = 200


class Traffic:
    """Threads that continue through every fault until the block ends.

    Each step is called repeatedly with a client, and again later if the service is unreachable.
    """

    def __init__(self) -> None:
        self._stopping = threading.Event()
        self._threads: list[threading.Thread] = []
        self.failures: list[str] = []

    def add(self, site: Site, step) -> None:
        """Call ``step(client)`` repeatedly in its own thread."""

        def work() -> None:
            with site.client() as client:
                while not self._stopping.is_set():
                    try:
                        step(client)
                    except httpx.TransportError:
                        self._stopping.wait(AGAIN_SECONDS)
                    except Exception as error:  # noqa: BLE001 - told at the end, whatever it was
                        self.failures.append(f"{getattr(step, '__name__', step)}: {error!r}")
                        return

        self._threads.append(threading.Thread(target=work))

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        for thread in self._threads:
            thread.join()


class Uploader:
    """Keeps this many jobs unfinished, because a longer queue would only delay the end.

    Uploads without a response, or with 503, are sent again with the same key and must exist once.
    """

    def __init__(self, ledger: Ledger, uploads: Sequence[Upload], *, unfinished: int) -> None:
        self._ledger = ledger
        self._lock = threading.Lock()
        self._uploads = itertools.cycle(uploads)
        self._most = unfinished
        self._again: list[tuple[Upload, Entry]] = []
        self._pause = threading.Event()

    def __call__(self, client: httpx.Client) -> None:
        if count_unfinished(client) >= self._most:
            self._pause.wait(AGAIN_SECONDS)
            return
        upload, entry = self._next()
        answer = upload.send_as(entry, client, self._ledger)
        if answer is None or answer.status_code == httpx.codes.SERVICE_UNAVAILABLE:
            with self._lock:
                self._again.append((upload, entry))
            self._pause.wait(AGAIN_SECONDS)

    def _next(self) -> tuple[Upload, Entry]:
        with self._lock:
            if self._again:
                return self._again.pop(0)
            upload = next(self._uploads)
            return upload, self._ledger.sent(upload.kind)


class Reader:
    """Reads every new calibration: it has published nothing or everything."""

    def __init__(self, undisturbed: Undisturbed) -> None:
        self._expected = undisturbed.tables
        self._seen: set[str] = set()
        self._pause = threading.Event()
        self.violations: list[str] = []
        self.looked = 0

    def __call__(self, client: httpx.Client) -> None:
        answer = client.get("/calibrations", params={"limit": 50})
        if answer.status_code != httpx.codes.OK:
            self._pause.wait(AGAIN_SECONDS)
            return
        for found in answer.json()["calibrations"]:
            if found["id"] not in self._seen and found["status"] not in ("failed", "cancelled"):
                self._look(client, found)
        self._pause.wait(AGAIN_SECONDS)

    def _look(self, client: httpx.Client, found: dict) -> None:
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
        with np.load(io.BytesIO(digits("calibration.npz"))) as found:
            self._rows = found["inputs"][:4].tolist()
        self._reference = reference
        self._expected = self._post(client).json()["predictions"]
        self._lock = threading.Lock()
        self.statuses: Counter[str] = Counter()
        self.slowest = 0.0
        self.violations: list[str] = []

    def ask(self, client: httpx.Client) -> None:
        """Ask once, and note whatever is not the right answer."""
        began = time.monotonic()
        answer = self._post(client)
        took = time.monotonic() - began
        with self._lock:
            self.statuses[str(answer.status_code)] += 1
            self.slowest = max(self.slowest, took)
        if answer.status_code != httpx.codes.OK:
            self.violations.append(f"/predict was answered {answer.status_code}: {answer.text}")
        elif answer.json()["predictions"] != self._expected:
            self.violations.append(f"/predict answered otherwise than before: {answer.text}")
        time.sleep(ANSWER_PAUSE_SECONDS)

    def _post(self, client: httpx.Client) -> httpx.Response:
        body = {"calibration": self._reference, "inputs": self._rows}
        return client.post("/predict", json=body)


def count_unfinished(client: httpx.Client) -> int:
    """Return the number of unfinished jobs, at most a page of each status; a page if unknown."""
    count = 0
    for status in UNFINISHED:
        answer = client.get("/calibrations", params={"status": status, "limit": PAGE})
        if answer.status_code != httpx.codes.OK:
            return PAGE
        count += len(answer.json()["calibrations"])
    return count

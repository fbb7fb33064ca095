"""Who uses the service while faults strike: uploaders, and a reader who trusts nothing."""

import itertools
import threading
from collections.abc import Sequence
from typing import Self

import httpx

from fault_plan.ledger import Entry, Ledger
from fault_plan.published import Undisturbed, tables_digest
from fault_plan.site import Site
from fault_plan.uploads import Upload

AGAIN_SECONDS = 0.05
UNFINISHED = ("queued", "running")
PAGE = 200


class Traffic:
    """Threads that go on through every fault until the block ends.

    Each is called again and again with a client; what it cannot reach it tries again later.
    """

    def __init__(self) -> None:
        self._stopping = threading.Event()
        self._threads: list[threading.Thread] = []
        self.failures: list[str] = []

    def add(self, site: Site, step) -> None:
        """Call ``step(client)`` over and over in a thread of its own."""

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
    """Keeps so many jobs unfinished: a queue that grew would only be waited for at the end.

    What was not answered, or with 503, is sent again with the same key: it must be made once.
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
    """Looks at every calibration as soon as it shows: it has nothing published, or all of it."""

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
        # One that was unfinished may have succeeded since, and then has everything, too.
        if digest != expected and (is_ready or digest != str(int(httpx.codes.CONFLICT))):
            self.violations.append(f"{found['name']}, {found['status']}, showed {digest}")
        if is_ready:
            self._seen.add(found["id"])


def count_unfinished(client: httpx.Client) -> int:
    """Return how many jobs there are to do, at most a page of each state; a page if unknown."""
    count = 0
    for status in UNFINISHED:
        answer = client.get("/calibrations", params={"status": status, "limit": PAGE})
        if answer.status_code != httpx.codes.OK:
            return PAGE
        count += len(answer.json()["calibrations"])
    return count

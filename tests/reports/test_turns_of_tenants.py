"""Reports that take long for one tenant leave threads to another."""

import os
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import httpx
import pytest
from keyed_service import KeyedService, keyed_service, logits_of
from runner_children import stopped
from running_service import calibrated

pytestmark = pytest.mark.process

# More than the threads of all requests together.
MANY = 60
# Far less than the drawing process may take.
SOON_SECONDS = 20.0
PATHS = [
    *("/report?calibration=new", "/report?calibration=new&calibration=drawn"),
    *("/calibrations/new/bins", "/calibrations/new"),
]


@pytest.fixture
def served(tmp_path) -> Iterator[KeyedService]:
    with keyed_service(tmp_path) as service:
        yield service


def drawing_processes() -> list[int]:
    """Return the processes of this one's service that draw figures."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            words = (folder / "cmdline").read_bytes()
            parent = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
        except OSError:  # it has just ended
            continue
        if b"vega_process.py" in words and parent == os.getpid():
            found.append(int(folder.name))
    return found


def note_sent(are_sent: threading.Semaphore, event: str, _: object) -> None:
    """Release the semaphore when a request was sent, as a trace of httpx."""
    if event == "http11.receive_response_headers.started":
        are_sent.release()


def test_drawings_of_one_tenant_leave_threads_to_another(served) -> None:
    clients = [served.client(served.make_known(name).text) for name in ("one", "other")]
    for client in clients:
        for name, n in (("drawn", 60), ("new", 90)):
            calibrated(client, {"name": name}, calibration=logits_of(n=n))
    one, other = clients
    assert one.get("/report?calibration=drawn&format=html").is_success
    # Services of other tests in this process may draw as well.
    drawing = drawing_processes()
    assert drawing
    with ThreadPoolExecutor(MANY) as threads:
        with stopped(*drawing):
            are_sent = threading.Semaphore(0)
            trace = {"trace": partial(note_sent, are_sent)}
            page = "/report?calibration=new&format=html"
            asked = [threads.submit(one.get, page, extensions=trace) for _ in range(MANY)]
            for _ in range(MANY):
                are_sent.acquire()
            for path in PATHS:
                assert other.get(path, timeout=SOON_SECONDS).is_success
            # Nor do they stop what needs no drawing of the tenant itself.
            assert one.get("/calibrations", timeout=SOON_SECONDS).is_success
            assert not any(future.done() for future in asked)
        assert {future.result().status_code for future in asked} == {httpx.codes.OK}

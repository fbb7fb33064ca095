"""The server processes of a `howsure serve`, one by one."""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager

import httpx
from runner_children import children
from scraped import Scraped

MODULE = b"service.cli.processes"


def server_processes(parent: int) -> list[int]:
    """Return the process ids of the server processes of a supervisor."""
    return children(parent, MODULE)


@contextmanager
def stopped(*pids: int) -> Iterator[None]:
    """Hold processes for as long as the block runs."""
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for pid in pids:
            os.kill(pid, signal.SIGCONT)


@contextmanager
def client_of(pid: int, parent: int, address: str) -> Iterator[httpx.Client]:
    """Yield a client whose one connection is held by one of the processes; it asked /healthz."""
    others = [other for other in server_processes(parent) if other != pid]
    one = httpx.Limits(max_connections=1, max_keepalive_connections=1, keepalive_expiry=None)
    with httpx.Client(base_url=address, timeout=60, limits=one) as client:
        with stopped(*others):
            assert client.get("/healthz").status_code == httpx.codes.OK
        yield client


def counts(found: Scraped) -> dict[tuple, float]:
    """Return all that only grows."""
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in found.families
        if family.type in ("counter", "histogram")
        for sample in family.samples
    }

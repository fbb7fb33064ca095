"""The cells of the throughput table: servers, requests, connections and measurements."""

import resource
import time
from collections.abc import Sequence
from dataclasses import dataclass

import httpx
import numpy as np

from serve.answers import classes_of
from serve.connection import Answer
from serve.generators import Generate
from serve.networks import Network
from serve.payloads import Payload, Write, bare_json, bare_raw, in_json, in_npy, in_oip
from serve.process_tree import cpu_seconds, pss_mib
from serve.server_process import ServerProcess

IN_PROCESS = "session.run"
BODIES: dict[str, dict[str, Write]] = {
    "howsure": {"json": in_json, "npy": in_npy, "oip": in_oip},
    "bare": {"json": bare_json, "raw": bare_raw},
}
SETTLE_SECONDS = 5.0


@dataclass(frozen=True)
class Cell:
    """One line of the table."""

    network: str
    rows: int
    connections: int
    body: str
    server: str


@dataclass(frozen=True)
class Numbers:
    """One measurement of a cell; seconds, MiB."""

    rate: float
    p50: float
    p99: float
    cpu_per_row: float
    pss: float
    failed: int


@dataclass(frozen=True)
class Asked:
    """How to measure a cell over HTTP."""

    server: ServerProcess
    payload: Payload

    def measure(self, cell: Cell, generate: Generate, seconds: float) -> Numbers:
        """Load the server for this time."""
        settle(self.server)
        before = cpu_seconds(self.server.pid)
        found = generate(self.server.address, self.payload, cell.connections, seconds)
        settle(self.server)
        used = cpu_seconds(self.server.pid) - before
        per_row = used / max(1, found.good * cell.rows)
        memory = pss_mib(self.server.pid)
        return Numbers(found.rate, found.p50, found.p99, per_row, memory, found.failed)


def asked_cells(
    servers: Sequence[ServerProcess],
    networks: Sequence[Network],
    n_rows: Sequence[int],
    connections: Sequence[int],
) -> dict[Cell, Asked]:
    """Return all cells of the servers."""
    cells = {}
    for server in servers:
        for network in networks:
            for rows in n_rows:
                for body, write in BODIES[server.name.partition(",")[0]].items():
                    payload = write(network.name, network.rows(rows, seed=11))
                    for c in connections:
                        cell = Cell(network.name, rows, c, body, server.name)
                        cells[cell] = Asked(server, payload)
    return cells


def check_answer(asked: Asked, expected: Sequence[int]) -> None:
    """Send one request; exit if the classes differ from ONNX Runtime's."""
    payload = asked.payload
    url = f"http://{asked.server.address}{payload.path}"
    found = httpx.post(url, content=payload.body, headers=dict(payload.headers), timeout=60)
    if found.status_code != httpx.codes.OK:
        raise SystemExit(f"{asked.server.name} {payload.path}: {found.status_code} {found.text}")
    head = "\r\n".join(["", *(f"{name}: {value}" for name, value in found.headers.items())])
    classes = classes_of(payload.format, Answer(200, head.encode(), found.content))
    if classes != list(expected):
        raise SystemExit(f"{asked.server.name}: classes {classes}, ONNX Runtime says {expected}")


def measure_in_process(network: Network, rows: np.ndarray, threads: int, seconds: float) -> Numbers:
    """Call ``session.run`` repeatedly in this process."""
    session = network.session(threads)
    feed, taken = {"input": rows}, list[float]()
    session.run(None, feed)
    began, used = time.perf_counter(), _own_cpu()
    while (start := time.perf_counter()) - began < seconds:
        session.run(None, feed)
        taken.append(time.perf_counter() - start)
    used = _own_cpu() - used
    p50, p99 = np.quantile(taken, [0.5, 0.99])
    rate = len(taken) / (time.perf_counter() - began)
    return Numbers(rate, float(p50), float(p99), used / len(taken) / len(rows), float("nan"), 0)


def settle(server: ServerProcess) -> None:
    """Wait until the server is idle."""
    until = time.monotonic() + SETTLE_SECONDS
    used = cpu_seconds(server.pid)
    while time.monotonic() < until:
        time.sleep(0.1)
        before, used = used, cpu_seconds(server.pid)
        if used - before <= 0.02:  # noqa: PLR2004 - two ticks
            return


def _own_cpu() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime

"""The worst delay of one tenant's predictions while another sends one costly request."""

import multiprocessing
import time
from dataclasses import dataclass
from multiprocessing.connection import Connection as Pipe

import httpx
import numpy as np

from serve.costly_requests import Costly

EVERY_SECONDS = 0.01
PAUSE_SECONDS = 0.1
OK = httpx.codes.OK
# A costly request may take its time; the neighbour may not.
PATIENCE_SECONDS = 300.0


@dataclass(frozen=True)
class Asked:
    """One request: the time when it was sent, in seconds of the machine's clock, and its delay."""

    at: float
    seconds: float


@dataclass(frozen=True)
class Delay:
    """What a costly request took, and the worst delay of the neighbour meanwhile, in seconds."""

    name: str
    status: int
    sent: int
    seconds: float
    worst: float
    begin: float
    end: float


@dataclass(frozen=True)
class Delays:
    """The worst delays, and what the neighbour had before: its median and its worst."""

    idle: tuple[float, float]
    found: list[Delay]
    wrong: int


def delays(
    address: str,
    costly: list[Costly],
    *,
    key: str,
    neighbour: str,
    row: np.ndarray,
    name: str,
    idle_seconds: float,
) -> Delays:
    """Send each costly request once; meanwhile the neighbour asks every ten milliseconds.

    Before them it asks alone for ``idle_seconds``.
    """
    ours, theirs = multiprocessing.Pipe()
    body = {"calibration": name, "inputs": row.tolist()}
    watcher = multiprocessing.get_context("spawn").Process(
        target=_watch, args=(theirs, f"http://{address}/predict", neighbour, body), daemon=True
    )
    watcher.start()
    ours.recv()
    start = time.monotonic()
    time.sleep(idle_seconds)
    idle = (start, time.monotonic())
    spans = [_send(address, key, one) for one in costly]
    ours.send(None)
    asked, wrong = ours.recv()
    watcher.join()
    quiet = [one.seconds for one in asked if idle[0] <= one.at < idle[1]]
    found = [
        Delay(
            one.name, status, len(one.content), end - begin, _worst(asked, begin, end), begin, end
        )
        for one, (begin, end, status) in zip(costly, spans, strict=True)
    ]
    found.sort(key=lambda delay: -delay.worst)
    return Delays((float(np.median(quiet)), max(quiet)), found, wrong)


def _worst(asked: list[Asked], begin: float, end: float) -> float:
    """Return the worst delay of requests that waited at some time of this span."""
    waited = [one.seconds for one in asked if one.at <= end and one.at + one.seconds >= begin]
    return max(waited, default=0.0)


def _send(address: str, key: str, costly: Costly) -> tuple[float, float, int]:
    headers = {"Authorization": f"Bearer {key}", **costly.headers}
    url = f"http://{address}{costly.path}"
    with httpx.Client(timeout=PATIENCE_SECONDS) as client:
        begin = time.monotonic()
        answer = client.request(costly.method, url, headers=headers, content=costly.content)
        end = time.monotonic()
    time.sleep(PAUSE_SECONDS)
    return begin, end, answer.status_code


def _watch(pipe: Pipe, url: str, key: str, body: dict[str, object]) -> None:
    """Ask until told to end; then send what was seen."""
    asked, wrong = [], 0
    with httpx.Client(headers={"Authorization": f"Bearer {key}"}, timeout=60.0) as client:
        client.post(url, json=body)
        pipe.send(None)
        while not pipe.poll():
            at = time.monotonic()
            wrong += client.post(url, json=body).status_code != OK
            seconds = time.monotonic() - at
            asked.append(Asked(at, seconds))
            time.sleep(max(EVERY_SECONDS - seconds, 0.0))
    pipe.send((asked, wrong))

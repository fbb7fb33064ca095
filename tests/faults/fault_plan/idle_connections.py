"""Thousands of idle connections beside a well-behaved client."""

import itertools
import json
import math
import multiprocessing
import random
import re
import resource
import selectors
import socket
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import httpx
from hot_fronts import Connection, post
from howsure_command import Command
from keyed_service import logits_of
from runner_children import wait_until
from running_service import calibrated

from fault_plan.figures import Figures
from fault_plan.site import Site, end

NAME = "asked"
ROWS = [[3, 0, 0], [0, 1, 2]]
BODY = json.dumps({"calibration": NAME, "logits": ROWS}).encode()
REQUESTS_PER_SECOND = 50
SLOWEST_SECONDS = 0.5
MOST_MEBIBYTES = 512
# Open files other than connections of clients.
OTHER_FILES = 256
BACK_SECONDS = 30.0
# Sent on a connection: nothing, the beginning of a request, or one whole request.
WORDS = {
    "silent": b"",
    "half a head": b"POST /predict HTTP/1.1\r\nHost: localhost\r\nX-Slow: ",
    "asked once": b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n",
}
# Number of ports of one loopback address.
PER_ADDRESS = 5000
# Time to open all of them on a busy machine.
START_SECONDS = 600.0
REFUSED = b"HTTP/1.1 503"
SPAWN = multiprocessing.get_context("spawn")


def idle_connections(
    folder: Path,
    *,
    times: int = 10_000,
    seed: int = 0,
    seconds: float = 60.0,
    most: int = 4096,
    opened_per_second: int = 1000,
    slowest: float | None = SLOWEST_SECONDS,
) -> Figures:
    """Hold ``times`` connections at a server with the limit ``most``, and reopen closed ones."""
    figures = Figures("idle-connections", seed)
    site = Site(folder, max_connections=str(most))
    process = site.serve()
    try:
        address = ("127.0.0.1", site.port)
        with site.client() as client:
            calibrated(client, {"name": NAME, "bins": 2, "folds": 2}, calibration=logits_of())
        alone = _ask_for(min(seconds, 5.0), address, figures)
        files_before = _open_files(process)
        with _held(address, times, opened_per_second, seed, figures):
            beside = _ask_for(seconds, address, figures)
            files = _open_files(process)
        left_at = time.monotonic()
        few = files_before + OTHER_FILES // 8
        are_back = wait_until(lambda: _open_files(process) <= few, seconds=BACK_SECONDS)
        figures.recovery_seconds.append(time.monotonic() - left_at)
        status = Path(f"/proc/{process.pid}/status").read_text()
        peak_mib = int(re.search(r"VmHWM:\s+(\d+) kB", status)[1]) // 1024
    finally:
        end(process)
    figures.more = {
        "held": times,
        "most": most,
        "answers": len(beside),
        "p99_alone_ms": round(1000 * _p99(alone), 1),
        "p99_beside_ms": round(1000 * _p99(beside), 1),
        "open_files": files,
        "peak_mib": peak_mib,
    }
    broken = {
        "99 of 100 good answers were late": slowest is not None and _p99(beside) > slowest,
        "too many files were open": files > most + OTHER_FILES,
        "no connection had to make place": figures.fired > most and not figures.struck,
        "the server took too much memory": peak_mib > MOST_MEBIBYTES,
        "the connections did not end with their clients": not are_back,
    }
    figures.violations += [what for what, is_broken in broken.items() if is_broken]
    return figures


def _ask_for(seconds: float, address: tuple[str, int], figures: Figures) -> list[float]:
    """Ask on a connection that stays open and on new ones, in turn.

    Returns the time of each response, from when its request was due.
    """
    took: list[float] = []
    kept = Connection(address)
    began = time.monotonic()
    for number in range(math.ceil(seconds * REQUESTS_PER_SECOND)):
        due = began + number / REQUESTS_PER_SECOND
        time.sleep(max(0.0, due - time.monotonic()))
        try:
            connection = Connection(address) if number % 2 else kept
            connection.send(post("/predict", BODY, Content_Type="application/json"))
            answer = connection.answer()
            if answer.status != httpx.codes.OK or len(answer.json()["predictions"]) != len(ROWS):
                figures.violations.append(f"{answer.status}: {answer.body[:200]!r}")
        except OSError as error:
            figures.violations.append(f"{'new' if number % 2 else 'kept'} connection: {error!r}")
            kept = Connection(address)
        if connection is not kept:
            connection.__exit__()
        took.append(time.monotonic() - due)
    kept.__exit__()
    return took


def _open_files(process: Command) -> int:
    return len(list(Path(f"/proc/{process.pid}/fd").iterdir()))


def _p99(took: list[float]) -> float:
    return sorted(took)[math.ceil(0.99 * len(took)) - 1]


@contextmanager
def _held(
    address: tuple[str, int], times: int, per_second: int, seed: int, figures: Figures
) -> Iterator[None]:
    """Hold connections, from a process that does not slow the measuring one; reopen closed ones."""
    ending, count, ended = SPAWN.Event(), SPAWN.Value("i", 0), SPAWN.SimpleQueue()
    arguments = (address, times, per_second, random.Random(seed), ending, count, ended)
    holder = SPAWN.Process(target=_hold, args=arguments)
    holder.start()
    try:
        all_opened = wait_until(lambda: count.value >= times, seconds=START_SECONDS)
        assert all_opened, f"{count.value} connections were opened"
        yield
    finally:
        ending.set()
        figures.struck = ended.get()
        holder.join()
        figures.fired = count.value


def _hold(address, times, per_second, generator, ending, count, ended) -> None:
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(times + 256, hard), hard))
    ends, began, numbers = Counter(), time.monotonic(), itertools.count()
    with selectors.DefaultSelector() as held:
        while not ending.is_set():
            is_due = count.value / per_second <= time.monotonic() - began
            if is_due := is_due and len(held.get_map()) < times:
                source = (f"127.0.0.{2 + next(numbers) // PER_ADDRESS % 200}", 0)
                with suppress(OSError):
                    opened = socket.create_connection(address, source_address=source)
                    kind = generator.choice(list(WORDS))
                    held.register(opened, selectors.EVENT_READ, [kind, b""])
                    opened.sendall(WORDS[kind])
                    count.value += 1
            for key, _ in held.select(0 if is_due else 1 / per_second):
                said = b""
                with suppress(OSError):
                    said = key.fileobj.recv(4096)
                if said:
                    key.data[1] = said
                    continue
                kind, last = key.data
                ends["turned away" if last.startswith(REFUSED) else f"ended, {kind}"] += 1
                held.unregister(key.fileobj)
                key.fileobj.close()
        for key in list(held.get_map().values()):
            key.fileobj.close()
    ended.put(ends)

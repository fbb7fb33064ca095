"""Thousands of idle connections beside a well-behaved client."""

import json
import math
import re
import time
from dataclasses import dataclass, field
from pathlib import Path

import httpx
from hot_fronts import Connection, post
from howsure_command import Command
from keyed_service import logits_of
from running_service import calibrated

from fault_plan.figures import Figures
from fault_plan.idle_holder import Holder
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
        good = _GoodClient(address)
        alone = good.ask_for(min(seconds, 5.0))
        before = _open_files(process)
        with Holder(address, times=times, seed=seed, per_second=opened_per_second) as holder:
            holder.wait_until_all_were_opened()
            beside = good.ask_for(seconds)
            files = _open_files(process)
        figures.fired, figures.struck = holder.opened, holder.ended
        _judge(figures, good, beside, files=files, most=most, slowest=slowest)
        figures.recovery_seconds.append(_seconds_until(process, before + OTHER_FILES // 8))
        figures.more = {
            "held": times,
            "most": most,
            "answers": len(beside),
            "p99_alone_ms": _milliseconds(_p99(alone)),
            "p99_beside_ms": _milliseconds(_p99(beside)),
            "slowest_ms": _milliseconds(max(beside)),
            "open_files": files,
            "peak_mib": _peak_mebibytes(process),
        }
        if figures.more["peak_mib"] > MOST_MEBIBYTES:
            figures.violations.append(f"the server took {figures.more['peak_mib']} MiB")
        if figures.longest_recovery > BACK_SECONDS:
            figures.violations.append("the connections did not end with their clients")
    finally:
        end(process)
    return figures


@dataclass
class _GoodClient:
    """Sends requests on a connection that stays open and on new ones, in turn."""

    address: tuple[str, int]
    wrong: list[str] = field(default_factory=list)

    def ask_for(self, seconds: float) -> list[float]:
        """Return the time of each response, from when its request was due."""
        took: list[float] = []
        kept = Connection(self.address)
        began = time.monotonic()
        for number in range(math.ceil(seconds * REQUESTS_PER_SECOND)):
            due = began + number / REQUESTS_PER_SECOND
            time.sleep(max(0.0, due - time.monotonic()))
            try:
                if number % 2:
                    with Connection(self.address) as new:
                        self._ask(new)
                else:
                    self._ask(kept)
            except OSError as error:
                self.wrong.append(f"{'new' if number % 2 else 'kept'} connection: {error!r}")
                if number % 2 == 0:
                    kept.__exit__()
                    kept = Connection(self.address)
            took.append(time.monotonic() - due)
        kept.__exit__()
        return took

    def _ask(self, connection: Connection) -> None:
        connection.send(post("/predict", BODY, Content_Type="application/json"))
        answer = connection.answer()
        if answer.status != httpx.codes.OK or len(answer.json()["predictions"]) != len(ROWS):
            self.wrong.append(f"{answer.status}: {answer.body[:200]!r}")


def _judge(
    figures: Figures,
    good: _GoodClient,
    took: list[float],
    *,
    files: int,
    most: int,
    slowest: float | None,
) -> None:
    figures.violations += good.wrong
    if slowest is not None and _p99(took) > slowest:
        figures.violations.append(f"99 of 100 good answers took up to {_p99(took):.2f} s")
    if files > most + OTHER_FILES:
        figures.violations.append(f"{files} files were open")
    if figures.fired > most and not figures.struck:
        figures.violations.append("no connection had to make place")


def _seconds_until(process: Command, files: int) -> float:
    began = time.monotonic()
    while _open_files(process) > files and time.monotonic() - began < 2 * BACK_SECONDS:
        time.sleep(0.05)
    return time.monotonic() - began


def _open_files(process: Command) -> int:
    return len(list(Path(f"/proc/{process.pid}/fd").iterdir()))


def _peak_mebibytes(process: Command) -> int:
    status = Path(f"/proc/{process.pid}/status").read_text()
    return int(re.search(r"VmHWM:\s+(\d+) kB", status)[1]) // 1024


def _p99(took: list[float]) -> float:
    return sorted(took)[math.ceil(0.99 * len(took)) - 1]


def _milliseconds(seconds: float) -> float:
    return round(1000 * seconds, 1)

"""PostgreSQL is stopped, crashes or freezes under load."""

import itertools
import random
import time
import uuid
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
from databases import PostgresServer, ordinary_database
from runner_children import stopped, wait_until

from fault_plan.checker import check_files
from fault_plan.figures import Figures
from fault_plan.load import under_load
from fault_plan.site import Site, end
from fault_plan.uploads import mixed_uploads

PREDICTORS = 2
UNFINISHED = 4
BACK_SECONDS = 30.0
WAYS = ("immediate", "fast", "freeze")


def database_away(
    folder: Path,
    *,
    times: int = 5,
    seed: int,
    seconds: float = 30.0,
    between: float = 8.0,
    copies: int = 20,
    ways: tuple[str, ...] = WAYS,
    patience: float = 2.0,
) -> Figures:
    """Take the database away ``times`` times for this many seconds, in each way in turn.

    Requests for calibrations that are not in memory must be refused within ``patience`` seconds.
    """
    figures, generator = Figures("database-away", seed), random.Random(seed)
    with PostgresServer() as server, ordinary_database(server.url) as database_url:
        site, strangers = Site(folder, database_url), _Strangers(patience)
        options = {"unfinished": UNFINISHED, "predictors": PREDICTORS, "steps": [strangers]}
        worker = site.start("worker")
        try:
            with (
                site.serving("--no-worker") as client,
                under_load(site, client, mixed_uploads(copies), figures, **options),
            ):
                for way in itertools.islice(itertools.cycle(ways), times):
                    time.sleep(generator.uniform(1, between))
                    with _away(server, way), strangers.told(way):
                        time.sleep(seconds)
                    figures.strike([way])
                    back_at = time.monotonic()
                    wait_until(lambda: client.get("/calibrations").is_success, seconds=BACK_SECONDS)
                    figures.recovery_seconds.append(time.monotonic() - back_at)
                time.sleep(1)
        finally:
            end(worker)
        check_files(site, figures)
    figures.more["not_loaded"] = {way: dict(counts) for way, counts in strangers.statuses.items()}
    return figures


@contextmanager
def _away(server: PostgresServer, way: str) -> Iterator[None]:
    if way == "freeze":
        with stopped(*server.processes()):
            yield
        return
    server.stop(way)
    try:
        yield
    finally:
        server.start()


class _Strangers:
    """Requests calibrations that are not in memory and need the database.

    While it is stopped the response must be 503, and soon. A frozen database may respond at any
    moment.
    """

    def __init__(self, patience: float) -> None:
        self._patience = patience
        self._way = "there"
        self.statuses: dict[str, Counter] = {}
        self.violations: list[str] = []

    @contextmanager
    def told(self, way: str) -> Iterator[None]:
        self._way = way
        try:
            yield
        finally:
            self._way = "there"

    def __call__(self, client: httpx.Client) -> None:
        way, began = self._way, time.monotonic()
        body = {"calibration": str(uuid.uuid4()), "inputs": [[0.0]]}
        status = client.post("/predict", json=body, timeout=90).status_code
        took = time.monotonic() - began
        if way != self._way:
            way = "between"
        self.statuses.setdefault(way, Counter())[str(status)] += 1
        too_late = way in ("immediate", "fast") and (status != 503 or took > self._patience)
        if too_late or status not in (404, 503):
            self.violations.append(f"not loaded, database {way}: {status} after {took:.2f} s")
        time.sleep(0.02)

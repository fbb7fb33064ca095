"""Two server processes race for the versions of one name."""

import itertools
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx

from fault_plan.checker import check_files, wait_until_quiet
from fault_plan.figures import Figures
from fault_plan.published import Undisturbed, run_undisturbed, tables_digest
from fault_plan.site import Site, end, free_port
from fault_plan.stored_jobs import stored_jobs
from fault_plan.uploads import Entry, Ledger, Upload, outputs_set

NAME = "raced"
CLIENTS_OF_EACH = 4
# Sets of two sizes, so that tables under the wrong version are noticed.
CONFIG = {"bins": 1, "folds": 2, "measures": ["neg_log_pmax"], "top_k": [1]}
UPLOADS = [
    Upload("few", outputs_set(24, n_classes=3), config=CONFIG),
    Upload("more", outputs_set(48, n_classes=3, seed=1), config=CONFIG),
]


def name_race(folder: Path, *, times: int = 1000, seed: int = 0, database_url: str) -> Figures:
    """Upload ``times`` sets under one name; every other client sends the other set."""
    figures, ledger = Figures("name-race", seed), Ledger()
    site, second = Site(folder, database_url), free_port()
    with site.serving() as client:
        other = site.serve(port=second)
        try:
            undisturbed = run_undisturbed(client, database_url, UPLOADS)
            _race(site, ledger, [site.port, second], times)
            figures.fired = times
            wait_until_quiet(client, figures)
            _check_versions(figures, ledger.entries, times)
            _check_tables(figures, ledger.entries, undisturbed, client)
        finally:
            end(other)
        rows = Counter(job.version for job in stored_jobs(database_url) if job.name == NAME)
        if rows != Counter(range(1, times + 1)):
            figures.violations.append(f"the database holds other versions: {rows}")
    check_files(site, figures)
    return figures


def _race(site: Site, ledger: Ledger, ports: list[int], times: int) -> None:
    left, lock = itertools.count(), threading.Lock()
    gate = threading.Barrier(CLIENTS_OF_EACH * len(ports))

    def upload_on(place: int) -> None:
        upload = UPLOADS[place // len(ports) % len(UPLOADS)]
        with site.client(ports[place % len(ports)]) as client:
            gate.wait()
            while True:
                with lock:
                    if next(left) >= times:
                        return
                ledger.note(upload, NAME).send(client)

    with ThreadPoolExecutor(gate.parties) as threads:
        for done in [threads.submit(upload_on, place) for place in range(gate.parties)]:
            done.result()


def _check_versions(figures: Figures, entries: list[Entry], times: int) -> None:
    figures.jobs = Counter(f"answered {entry.status}" for entry in entries)
    versions = Counter(entry.found["version"] for entry in entries if entry.is_accepted)
    if versions != Counter(range(1, times + 1)):
        twice = [version for version, count in versions.items() if count > 1]
        lacking = set(range(1, times + 1)) - versions.keys()
        figures.violations.append(f"versions given twice: {twice}; never: {sorted(lacking)}")


def _check_tables(
    figures: Figures, entries: list[Entry], undisturbed: Undisturbed, client: httpx.Client
) -> None:
    """Check that each version has the tables of its own set."""
    for entry in entries:
        version, made = entry.found.get("version"), entry.found.get("id")
        found = client.get(f"/calibrations/{NAME}@{version}").json()
        figures.jobs[str(found.get("status"))] += 1
        if found.get("id") != made:
            figures.violations.append(f"version {version} is not what was answered")
        if tables_digest(client, made) != undisturbed.tables[entry.upload.kind]:
            figures.violations.append(f"version {version} has not the tables of its set")

"""``python -m fault_plan FAULT``: inflict one fault, or ``all`` of them, in full."""

import argparse
import random
import signal
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from databases import PostgresServer, ordinary_database

from fault_plan.database_away import database_away
from fault_plan.delete_race import delete_race
from fault_plan.disk_full import disk_full
from fault_plan.figures import Figures
from fault_plan.framing import framing
from fault_plan.idle_connections import idle_connections
from fault_plan.kills import kill_dask_worker, kill_server, kill_worker
from fault_plan.noisy_neighbour import noisy_neighbour
from fault_plan.stop_server import stop_server


def on_postgresql(fault: Callable[..., Figures]) -> Callable[..., Figures]:
    """Return the fault on a server of its own."""

    def inflict(folder: Path, **options: Any) -> Figures:
        with PostgresServer() as server, ordinary_database(server.url) as database_url:
            return fault(folder, database_url=database_url, **options)

    return inflict


FAULTS: dict[str, Callable[..., Figures]] = {
    fault.__name__.replace("_", "-"): fault
    for fault in (
        *(kill_server, stop_server, kill_dask_worker, database_away, disk_full, delete_race),
        *(framing, idle_connections, noisy_neighbour),
    )
}
FAULTS["kill-worker"] = on_postgresql(kill_worker)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m fault_plan", description=__doc__)
    parser.add_argument("fault", choices=[*FAULTS, "all"])
    parser.add_argument("--times", type=int, help="number of faults")
    parser.add_argument("--seed", type=int, help="seed of the moments; printed if not given")
    parser.add_argument("--folder", type=Path, help="folder to keep; must be empty or absent")
    arguments = parser.parse_args()
    # On SIGTERM, end all started processes.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    names = list(FAULTS) if arguments.fault == "all" else [arguments.fault]
    results = [_inflict(name, arguments) for name in names]
    sys.exit(1 if any(figures.violations for figures in results) else 0)


def _inflict(name: str, arguments: argparse.Namespace) -> Figures:
    seed = random.randrange(2**32) if arguments.seed is None else arguments.seed
    sys.stderr.write(f"{name}, seed {seed}\n")
    options = {} if arguments.times is None else {"times": arguments.times}
    with tempfile.TemporaryDirectory(prefix="howsure-faults-") as kept:
        figures = FAULTS[name](arguments.folder or Path(kept), seed=seed, **options)
    print(figures.line(), figures.sentence(), sep="\n", flush=True)  # noqa: T201
    return figures


if __name__ == "__main__":
    main()

"""Compare the service with a bare server and with ``session.run``, under load.

    python benchmarks/serve_throughput.py [--quick] [--repeats 5] [--json FILE]
    python benchmarks/serve_throughput.py --previous ../howsure-1.0/.venv/bin/python

Makes two seeded models (a perceptron and a small CNN), starts the service with them and two bare
servers (serve/bare_server.py), checks that all return ONNX Runtime's classes, and loads one after
the other from a separate process, in an order that is shuffled for every repeat. Prints Markdown:
the median of each cell, and the ratios of the service to the bare servers, each within one repeat.
``--previous`` replaces the bare servers by another version of the service, run by that interpreter.
"""

import argparse
import asyncio
import dataclasses
import json
import os
import platform
import sys
from collections.abc import Sequence
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path

import numpy as np
import onnxruntime
from serve.cells import (
    IN_PROCESS,
    Asked,
    Cell,
    Numbers,
    asked_cells,
    check_answer,
    measure_in_process,
)
from serve.generators import GENERATORS, default_generator
from serve.load import closed_loop
from serve.networks import Network, network
from serve.server_process import (
    ServerProcess,
    bare_server,
    calibrate,
    end_in_order_when_told,
    service,
)
from serve.tables import PREVIOUS, Repeats, numbers_table, ratios_table

WARM_CONNECTIONS = 8
WARM_SECONDS = 0.3


def main() -> None:
    given = arguments()
    end_in_order_when_told()
    networks = [network(name) for name in given.models]
    measures = {} if given.measures is None else {"measures": given.measures}
    with ExitStack() as stack:
        ours = stack.enter_context(service(threads=str(given.threads), workers="1"))
        others = [stack.enter_context(server) for server in compared_servers(networks, given)]
        for server in [ours, *others]:
            if server.name.startswith("howsure"):
                for made in networks:
                    calibrate(server, made, **measures)
        cells = asked_cells([ours, *others], networks, given.rows, given.connections)
        check(cells, networks)
        measured = measure(cells, networks, given)
    load = os.getloadavg()[0]
    print(f"{os.cpu_count()} cores ({platform.machine()}), load {load:.1f} at the end,", end=" ")
    print(f"Python {platform.python_version()}, onnxruntime {onnxruntime.__version__},", end=" ")
    print(f"{given.threads} thread(s) a session, generator {given.generator},", end=" ")
    print(f"{given.seconds:g} s a cell, {given.repeats} repeat(s)\n")
    print(numbers_table(measured), ratios_table(measured), sep="\n\n")
    if given.json:
        given.json.write_text(json.dumps(as_records(measured), indent=1) + "\n")


def compared_servers(
    networks: Sequence[Network], given: argparse.Namespace
) -> list[AbstractContextManager[ServerProcess]]:
    """Return the servers to compare with, not yet started."""
    if given.previous:
        threads = str(given.threads)
        return [service(name=PREVIOUS, python=given.previous, threads=threads, workers="1")]
    return [bare_server(networks, threads=given.threads, worker=worker) for worker in (False, True)]


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--models", nargs="+", default=["mlp", "conv"])
    parser.add_argument("--rows", nargs="+", type=int, default=[1, 32])
    parser.add_argument("--connections", nargs="+", type=int, default=[1, 8, 64])
    parser.add_argument("--seconds", type=float, default=2.0, help="of load, per cell and repeat")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--threads", type=int, default=1, help="of each ONNX Runtime session")
    parser.add_argument("--seed", type=int, default=0, help="of the order of the cells")
    parser.add_argument("--generator", choices=GENERATORS, default=default_generator())
    parser.add_argument("--measures", nargs="+", help="of the calibrations; default: the service's")
    parser.add_argument("--previous", metavar="PYTHON", help="interpreter of another version")
    parser.add_argument("--json", type=Path, help="write every measurement to this file")
    parser.add_argument("--quick", action="store_true", help="one model, one repeat, fewer cells")
    given = parser.parse_args()
    if given.quick:
        given.models, given.connections = ["mlp"], [8]
        given.seconds, given.repeats = 1.0, 1
    return given


def check(cells: dict[Cell, Asked], networks: Sequence[Network]) -> None:
    expected: dict[tuple[str, int], list[int]] = {}
    for made in networks:
        for rows in {cell.rows for cell in cells}:
            inputs = {"input": made.rows(rows, seed=11)}
            logits = made.session().run(None, inputs)[0]
            expected[made.name, rows] = logits.argmax(axis=1).tolist()
    for cell, asked in cells.items():
        check_answer(asked, expected[cell.network, cell.rows])


def measure(
    cells: dict[Cell, Asked], networks: Sequence[Network], given: argparse.Namespace
) -> Repeats:
    warm(cells)
    by_name = {made.name: made for made in networks}
    own = [Cell(made.name, rows, 1, "-", IN_PROCESS) for made in networks for rows in given.rows]
    order = [*cells, *own]
    measured: Repeats = {cell: [] for cell in order}
    generator = np.random.default_rng(given.seed)
    for repeat in range(given.repeats):
        generator.shuffle(order)
        for number, cell in enumerate(order):
            print(
                f"\r{repeat + 1}/{given.repeats} {number + 1}/{len(order)} ",
                end="",
                file=sys.stderr,
            )
            measured[cell].append(one(cell, cells.get(cell), by_name[cell.network], given))
    print(file=sys.stderr)
    return measured


def warm(cells: dict[Cell, Asked]) -> None:
    """Load each server briefly with each of its bodies."""
    for asked in {id(asked.payload): asked for asked in cells.values()}.values():
        address = asked.server.address
        wire = [asked.payload.wire(address)]
        load = closed_loop(address, wire, connections=WARM_CONNECTIONS, seconds=WARM_SECONDS)
        asyncio.run(load)


def one(cell: Cell, asked: Asked | None, made: Network, given: argparse.Namespace) -> Numbers:
    if asked is None:
        rows = made.rows(cell.rows, seed=11)
        return measure_in_process(made, rows, given.threads, given.seconds)
    return asked.measure(cell, GENERATORS[given.generator], given.seconds)


def as_records(measured: Repeats) -> list[dict[str, object]]:
    return [
        dataclasses.asdict(cell) | {"repeats": [dataclasses.asdict(n) for n in found]}
        for cell, found in measured.items()
    ]


if __name__ == "__main__":
    main()

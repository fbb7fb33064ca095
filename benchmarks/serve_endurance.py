"""Test the running service under stress.

    python benchmarks/serve_endurance.py overload
    python benchmarks/serve_endurance.py cancellations --leavers 500
    python benchmarks/serve_endurance.py deaths --kills 100
    python benchmarks/serve_endurance.py same-answers --rows 5000
    python benchmarks/serve_endurance.py memory --minutes 10
    python benchmarks/serve_endurance.py tenants --minutes 10

Each kind starts its own service, calibrates a seeded model, prints a table and exits with 1 if the
claim above the table does not hold.
"""

import argparse
import asyncio
import os
import platform
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import onnxruntime
import uvloop
from serve.cancellations import cancellations
from serve.checked import Tally
from serve.deaths import deaths
from serve.memory import memory
from serve.mixed_tenants import Tenant, mixed_tenants
from serve.networks import Network, network
from serve.overload import ABOVE, BELOW, REFUSALS, Overload, overload
from serve.payloads import SERVICE_FORMATS
from serve.same_answers import same_answers
from serve.server_process import ServerProcess, calibrate, end_in_order_when_told, new_key, service
from serve.tables import markdown

HEAVY_SAMPLES = 1000
SAMPLES = 2000
# The service has read new API keys.
KNOWN_SECONDS = 3.0


def main() -> None:
    given = arguments()
    end_in_order_when_told()
    made = network(given.model)
    with (
        tempfile.TemporaryDirectory(prefix="howsure-benchmark-") as data,
        service(threads=str(given.threads), data_dir=data) as server,
        asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner,
    ):
        given.data = Path(data)
        calibrate(server, made, samples=HEAVY_SAMPLES if given.model == "heavy" else SAMPLES)
        holds = runner.run(given.run(server, made, given))
    print(
        f"\n{os.cpu_count()} cores ({platform.machine()}), load {os.getloadavg()[0]:.1f},", end=" "
    )
    print(f"Python {platform.python_version()}, onnxruntime {onnxruntime.__version__}")
    print("The claim holds." if holds else "The claim does NOT hold.")
    raise SystemExit(0 if holds else 1)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--threads", type=int, default=1, help="of each ONNX Runtime session")
    parser.add_argument("--seed", type=int, default=0)
    kinds = parser.add_subparsers(required=True, metavar="kind")

    def kind(name: str, run: object, model: str) -> argparse.ArgumentParser:
        added = kinds.add_parser(name)
        added.set_defaults(run=run)
        added.add_argument("--model", choices=("mlp", "conv", "heavy"), default=model)
        return added

    asked = kind("overload", run_overload, "heavy")
    asked.add_argument("--seconds", type=float, default=10.0, help="of each load")
    asked.add_argument("--body", choices=SERVICE_FORMATS, default="npy")
    asked.add_argument("--kept", type=float, default=0.8, help="share of the knee that is claimed")
    asked.add_argument("--refusal-seconds", type=float, default=0.1, help="p99 that is claimed")
    left = kind("cancellations", run_cancellations, "conv")
    left.add_argument("--leavers", type=int, default=500)
    kind("deaths", run_deaths, "mlp").add_argument("--kills", type=int, default=100)
    same = kind("same-answers", run_same_answers, "mlp")
    same.add_argument("--rows", type=int, default=5000)
    same.add_argument("--clients", type=int, default=64)
    mixed = kind("tenants", run_tenants, "mlp")
    mixed.add_argument("--tenants", type=int, default=4)
    mixed.add_argument("--clients", type=int, default=64)
    mixed.add_argument("--minutes", type=float, default=10.0)
    kept = kind("memory", run_memory, "mlp")
    kept.add_argument("--minutes", type=float, default=10.0)
    kept.add_argument("--most", type=float, default=1.0, help="MiB in ten minutes, claimed")
    return parser.parse_args()


async def run_overload(server: ServerProcess, made: Network, given: argparse.Namespace) -> bool:
    write = SERVICE_FORMATS[given.body]
    found = await overload(server, made, write=write, seconds=given.seconds, seed=given.seed)
    print(
        f"Claim: at {ABOVE:g} times the knee at least {given.kept:.0%} of it is answered,", end=" "
    )
    print(f"99 % of all refusals come within {given.refusal_seconds:g} s, and nothing", end=" ")
    print(f"else comes; at {BELOW:g} times the knee nothing is refused.\n")
    levels = [(str(c), f"{rate:.0f}") for c, rate in found.levels.items()]
    print(markdown(["connections", "answers/s"], levels, words=0), end="\n\n")
    print_open_loops(found)
    print(f"\nThe generator took {found.own_share:.2f} of a core at {ABOVE:g} times the knee.")
    return found.holds(kept=given.kept, refusal_seconds=given.refusal_seconds)


def print_open_loops(found: Overload) -> None:
    names = "load,asked/s,answers/s,share of the knee,p50 ms,p99 ms,statuses"
    names += ",refusal p50 ms,p99 ms,max ms"
    rows = []
    for name, load in ((f"{BELOW:g} knee", found.below), (f"{ABOVE:g} knee", found.above)):
        refused = load.quantiles(0.5, 0.99, 1, statuses=REFUSALS)
        rows.append(
            (
                *(name, f"{load.offered:.0f}", f"{load.goodput:.0f}"),
                f"{load.goodput / found.knee:.2f}",
                *(f"{seconds * 1e3:.1f}" for seconds in load.quantiles(0.5, 0.99)),
                listed(load.counts()),
                *(f"{seconds * 1e3:.1f}" for seconds in refused),
            )
        )
    print(markdown(names.split(","), rows))


async def run_cancellations(
    server: ServerProcess, made: Network, given: argparse.Namespace
) -> bool:
    found = await cancellations(server.address, made, leavers=given.leavers, seed=given.seed)
    print("Claim: every answer to clients that stay has status 200 and is that of the row alone.\n")
    print(f"{found.left.total()} clients left in flight ({listed(found.left)}).\n")
    print_tallies(("beside them", found.beside), ("after them", found.after))
    return found.holds and found.left.total() >= given.leavers


async def run_deaths(server: ServerProcess, made: Network, given: argparse.Namespace) -> bool:
    found = await deaths(server, made, kills=given.kills, seed=given.seed)
    print("Claim: every answer is right, or a 503 with Retry-After.\n")
    print_tallies((f"{len(found.outages)} deaths", found.tally))
    outages = sorted(found.outages)
    print(
        f"\nFrom a kill to the next right answer: median {outages[len(outages) // 2]:.3f} s,",
        end=" ",
    )
    print(
        f"longest {outages[-1]:.3f} s. Without Retry-After: {found.tally.without_retry_after}.",
        end=" ",
    )
    print(f"Most 503 in a row for one request: {found.tally.most_refusals}.")
    return found.holds


async def run_same_answers(server: ServerProcess, made: Network, given: argparse.Namespace) -> bool:
    found = await same_answers(
        server.address, made, rows=given.rows, clients=given.clients, seed=given.seed
    )
    print("Claim: a row gets the class, bins, probabilities and intervals that it gets alone.\n")
    print_tallies((f"{found.rows} rows in {found.bins} bins, {given.clients} clients", found.tally))
    return found.holds


async def run_tenants(server: ServerProcess, made: Network, given: argparse.Namespace) -> bool:
    tenants = [
        Tenant(new_key(given.data, f"tenant-{i}"), network(made.name, seed=i))
        for i in range(given.tenants)
    ]
    await asyncio.sleep(KNOWN_SECONDS)
    for tenant in tenants:
        calibrate(server, tenant.network, key=tenant.key)
    seconds = given.minutes * 60
    found = await mixed_tenants(
        server.address, tenants, clients=given.clients, seconds=seconds, seed=given.seed
    )
    print("Claim: every answer is that of the tenant's own model for the row alone.\n")
    print_tallies((f"{given.tenants} tenants, {given.clients} clients, {seconds:g} s", found))
    return found.right > 0 and found.wrong == found.others(200) == 0


async def run_memory(server: ServerProcess, made: Network, given: argparse.Namespace) -> bool:
    found = await memory(server, made, seconds=given.minutes * 60, seed=given.seed)
    print(f"Claim: memory grows by less than {given.most:g} MiB in ten minutes.\n")
    print_tallies(("steady load", found.tally))
    print(f"\nBeside it {found.left.total()} left in flight, and nonsense got {listed(found.bad)}.")
    warm = found.seconds[found.warm]
    print(
        f"RSS {found.rss[0]:.0f} MiB at first, {found.rss[found.warm]:.0f} after {warm:.0f} s,",
        end=" ",
    )
    print(f"{found.rss[-1]:.0f} at last; slope since {warm:.0f} s: {found.slope:+.1f} MiB/10 min.")
    return found.slope < given.most and found.answers_hold


def print_tallies(*tallies: tuple[str, Tally]) -> None:
    names = ["", "right", "wrong", "statuses"]
    rows = [(name, str(t.right), str(t.wrong), listed(t.statuses)) for name, t in tallies]
    print(markdown(names, rows))
    for name, tally in tallies:
        for kind, text in tally.examples.items():
            print(f"\nFirst {kind}, {name}: {text}")


def listed(counted: Counter[int] | Counter[str]) -> str:
    pairs: Sequence[tuple[object, int]] = counted.most_common()
    return ", ".join(f"{'none' if name == 0 else name}: {n}" for name, n in pairs)


if __name__ == "__main__":
    main()

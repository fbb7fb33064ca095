"""Measure how long one tenant's predictions wait while another tenant sends costly requests.

    python benchmarks/worst_delay.py

A neighbour asks /predict for one row every ten milliseconds. Meanwhile another tenant sends a
hundred requests that cost a server much, one after another. Prints the worst delays.
"""

import argparse
import json
import os
import re
import tempfile
from operator import itemgetter
from pathlib import Path
from typing import Any

import httpx
from serve.costly_requests import costly_requests
from serve.networks import Network, network
from serve.server_process import end_in_order_when_told, new_key, service
from serve.tables import markdown
from serve.worst_delay import Delay, Delays, delays

NAME = "digits"
SAMPLES = 20_000
BINS = 1000
PATIENCE_SECONDS = 300
# Beyond the neighbour's own share.
CLAIMED_SECONDS = 0.05
SHOWN = 15
STALLS = "stalls.jsonl"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--only", default="", help="a regular expression: only requests with such a name"
    )
    parser.add_argument("--times", type=int, default=1, help="how often each is sent")
    parser.add_argument("--stacks", action="store_true", help="print where the longest stalls were")
    given = parser.parse_args()
    end_in_order_when_told()
    with tempfile.TemporaryDirectory(prefix="howsure-benchmark-") as folder:
        found = measured(Path(folder), given.only, given.times)
        stalls = [json.loads(line) for line in (Path(folder) / STALLS).read_text().splitlines()]
    print(f"Claim: no answer waits {CLAIMED_SECONDS * 1e3:.0f} ms longer than without them.\n")
    rows = [
        (
            delay.name,
            str(delay.status),
            f"{delay.sent / 2**20:.1f}",
            f"{delay.seconds:.2f}",
            f"{delay.worst * 1e3:.0f}",
            f"{longest(stalls, delay)['seconds'] * 1e3:.0f}",
        )
        for delay in found.found
    ]
    columns = ["request", "status", "MiB", "seconds", "worst delay, ms", "longest stall, ms CPU"]
    print(markdown(columns, rows[:SHOWN]))
    if given.stacks:
        for delay in found.found:
            print(delay.name, *longest(stalls, delay)["stack"], sep="\n    ")
    median, worst = found.idle
    beyond = [delay for delay in found.found if delay.worst - worst > CLAIMED_SECONDS]
    print(f"\n{len(found.found)} requests. Without them: median {median * 1e3:.1f} ms,", end=" ")
    print(f"worst {worst * 1e3:.1f} ms. Wrong answers to the neighbour: {found.wrong}.")
    print(f"{len(beyond)} requests delay by more than the claim.")
    stalled, name = max((longest(stalls, delay)["seconds"], delay.name) for delay in found.found)
    print(f"Longest stall: {stalled * 1e3:.0f} ms of CPU time, at {name}.")
    print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}.")
    raise SystemExit(bool(beyond or found.wrong))


def longest(stalls: list[dict[str, Any]], delay: Delay) -> dict[str, Any]:
    """Return the longest stall of the service while it answered a request."""
    during = [stall for stall in stalls if delay.begin <= stall["at"] <= delay.end + 0.05]
    return max(during, key=itemgetter("seconds"), default={"seconds": 0.0, "stack": []})


def measured(
    folder: Path,
    only: str = "",
    times: int = 1,
    *,
    samples: int = SAMPLES,
    sets: bool = True,
    idle_seconds: float = 10.0,
    **config: object,
) -> Delays:
    """Start a service with two tenants, calibrate for both with ``config``, and measure.

    Without ``sets`` no costly request has rows or a set.
    """
    keys = [new_key(folder / "data", tenant) for tenant in ("costly", "neighbour")]
    made = network("mlp")
    (folder / STALLS).touch()
    with service(watched=folder / STALLS, data_dir=str(folder / "data"), threads="1") as server:
        documents = [
            calibrated(server.address, key, made, samples, {"bins": bins, **config})
            for key, bins in zip(keys, (BINS, 15), strict=True)
        ]
        row = made.rows(1, seed=1)
        costly = costly_requests(NAME, documents[0], features=row.size, sets=sets)
        return delays(
            server.address,
            [one for one in costly if re.search(only, one.name)] * times,
            key=keys[0],
            neighbour=keys[1],
            name=NAME,
            row=row,
            idle_seconds=idle_seconds,
        )


def calibrated(
    address: str, key: str, made: Network, samples: int, config: dict[str, object]
) -> dict[str, object]:
    """Calibrate for the tenant of a key; return the bins document."""
    with httpx.Client(
        base_url=f"http://{address}",
        headers={"Authorization": f"Bearer {key}"},
        timeout=PATIENCE_SECONDS,
    ) as client:
        answer = client.post(
            "/calibrate",
            files={
                "model": made.onnx_model,
                "calibration": made.labelled_set(samples, seed=3),
                "config": (None, json.dumps({"name": NAME, **config})),
            },
            headers={"Prefer": f"wait={PATIENCE_SECONDS}"},
        )
        if answer.json().get("status") != "succeeded":
            raise SystemExit(f"the calibration did not succeed: {answer.text}")
        found: dict[str, object] = client.get(f"/calibrations/{NAME}/bins?format=json").json()
    return found


if __name__ == "__main__":
    main()

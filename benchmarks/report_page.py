"""Measure time and size of the report, as a page, as a file and as data.

    python benchmarks/report_page.py [--samples 50000] [--classes 100] [--calibrations 5]

Calibrates seeded logits with eight measures through its own service, and refits them with other
numbers of bins, so that there are several reports with the same number of pictures. The first
response after the start, which also loads the templates, is listed separately. Seconds are from the
request to the last byte, CPU seconds those of all processes of the service.
"""

import argparse
import json
import os
import platform
import statistics
import tempfile
import time
import zipfile
from dataclasses import dataclass
from pathlib import Path

import httpx
import numpy as np
from large_calibration import Peak, calibrate, write_logits
from numpy.lib import format as npy_format
from serve.process_tree import cpu_seconds
from serve.server_process import ServerProcess, end_in_order_when_told, service

MEASURES = ("entropy", "neg_log_pmax", "neg_log_topk_mass", "margin", "energy")
SUPPLIED = ("first", "second", "third")
HTML = {"Accept": "text/html"}
FORMS = ("page", "html", "markdown", "model-card", "csv", "json")
IDLE_SECONDS = 1.0  # CPU time of what goes on beside is not the report's


@dataclass(frozen=True)
class Taken:
    """One response: its time, CPU time and bytes."""

    seconds: float
    cpu: float
    size: int


def main() -> None:
    given = arguments()
    end_in_order_when_told()
    with tempfile.TemporaryDirectory(prefix="howsure-report-") as scratch:
        path = Path(scratch) / "calibration.npz"
        write_logits(path, given.samples, given.classes)
        add_measures(path, given.samples)
        with (
            service() as ours,
            httpx.Client(base_url=f"http://{ours.address}", timeout=600) as client,
        ):
            made = calibrations(client, path, ours, given.calibrations)
            time.sleep(IDLE_SECONDS)
            very_first = take(client, ours, made[0], "html")
            responses = {
                form: [take(client, ours, calibration, form) for calibration in made[1:]]
                for form in FORMS
            }
    print(f"{given.samples:,} samples, {given.classes} classes, ", end="")
    print(f"{len(MEASURES) + len(SUPPLIED)} measures, {len(made) - 1} reports")
    print_taken(very_first, responses)


def add_measures(path: Path, n_samples: int) -> None:
    """Add supplied uncertainties to a set: noise, which has tables and pictures as well."""
    rng = np.random.default_rng(7)
    with zipfile.ZipFile(path, "a") as archive:
        for name in SUPPLIED:
            with archive.open(f"uncertainty_{name}.npy", "w") as member:
                column = rng.gamma(2.0, size=n_samples).astype(np.float32)
                npy_format.write_array(member, column)


def calibrations(client: httpx.Client, path: Path, ours: ServerProcess, count: int) -> list[str]:
    """Return the ids of a calibration and of its refits."""
    measures = [*MEASURES, *(f"supplied:{name}" for name in SUPPLIED)]
    config = json.dumps({"name": "report", "measures": measures, "bins": 20})
    calibrate(client, path, Peak(ours.pid), config=(None, config))
    made = [client.get("/calibrations/report").json()["id"]]
    for number in range(count):
        answer = client.post(
            f"/calibrations/{made[0]}/refit",
            json={"bins": 21 + number},
            headers={"Prefer": "wait=600"},
        )
        answer.raise_for_status()
        if answer.json()["status"] != "succeeded":
            raise SystemExit(f"a refit has not succeeded: {answer.json()['error']}")
        made.append(answer.json()["id"])
    return made


def take(client: httpx.Client, ours: ServerProcess, calibration: str, form: str) -> Taken:
    """Request a report once."""
    params = {"calibration": calibration} | ({} if form == "page" else {"format": form})
    before, started = cpu_seconds(ours.pid), time.perf_counter()
    answer = client.get("/report", params=params, headers=HTML)
    seconds = time.perf_counter() - started
    answer.raise_for_status()
    return Taken(seconds, cpu_seconds(ours.pid) - before, len(answer.content))


def print_taken(very_first: Taken, responses: dict[str, list[Taken]]) -> None:
    """Print medians, and the machine."""
    print("\n| report | s | CPU s | kB |")
    print("|---|---:|---:|---:|")
    for form, taken in {"html, after the start": [very_first], **responses}.items():
        size = max(one.size for one in taken) / 1000
        print(f"| {form} | {_seconds(taken)} | {_cpu(taken)} | {size:.0f} |")
    print(
        f"\n{os.cpu_count()} cores ({platform.machine()}), load {os.getloadavg()[0]:.1f},", end=""
    )
    print(f" Python {platform.python_version()}")


def _seconds(taken: list[Taken]) -> str:
    return f"{statistics.median(one.seconds for one in taken):.2f}"


def _cpu(taken: list[Taken]) -> str:
    return f"{statistics.median(one.cpu for one in taken):.2f}"


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--samples", type=int, default=50_000)
    parser.add_argument("--classes", type=int, default=100)
    parser.add_argument("--calibrations", type=int, default=5, help="whose reports are timed")
    return parser.parse_args()


if __name__ == "__main__":
    main()

"""Measure time and memory of a calibration on a very large set.

    python benchmarks/large_calibration.py [--samples 1000000] [--classes 1000]

Writes seeded logits to a .npz file (4 GB for a million samples of a thousand classes), calibrates
them through its own service, and prints the time of each stage and the maximum memory of all
processes of the service together.
"""

import argparse
import os
import platform
import tempfile
import threading
import time
import zipfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import httpx
import numpy as np
from numpy.lib import format as npy_format
from serve.process_tree import pss_mib, rss_mib
from serve.server_process import end_in_order_when_told, service

SAMPLE_SECONDS = 0.1
ROWS_AT_A_TIME = 10_000
SHARPNESS = 12.0  # of the label's logit, which makes most predictions right


class Peak:
    """The maximum memory of a process tree, in MiB."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.rss = self.pss = 0.0
        self.by_stage: dict[str, float] = {}

    def look(self, stage: str) -> None:
        """Measure once."""
        self.rss = max(self.rss, rss_mib(self.pid))
        found = pss_mib(self.pid)
        self.pss = max(self.pss, found)
        self.by_stage[stage] = max(self.by_stage.get(stage, 0.0), found)


def main() -> None:
    given = arguments()
    end_in_order_when_told()
    with tempfile.TemporaryDirectory(prefix="howsure-large-") as scratch:
        path = Path(scratch) / "calibration.npz"
        write_logits(path, given.samples, given.classes)
        size = path.stat().st_size
        with (
            service() as ours,
            httpx.Client(base_url=f"http://{ours.address}", timeout=3600) as client,
        ):
            peak = Peak(ours.pid)
            stages = calibrate(client, path, peak)
    print(f"{given.samples:,} samples of {given.classes:,} logits, {size / 2**30:.2f} GiB")
    print_stages(stages, peak)


def print_stages(stages: Mapping[str, float], peak: Peak) -> None:
    """Print the time and the memory of each stage, and the machine."""
    print("\n| stage | seconds | peak PSS MiB |\n| --- | ---: | ---: |")
    for stage, seconds in stages.items():
        print(f"| {stage} | {seconds:.1f} | {peak.by_stage.get(stage, 0.0):.0f} |")
    print(f"\nPeak of all processes: PSS {peak.pss:.0f} MiB, RSS {peak.rss:.0f} MiB.")
    print(f"{os.cpu_count()} cores ({platform.machine()}), Python {platform.python_version()}")


def write_logits(path: Path, n_samples: int, n_classes: int) -> None:
    """Write a set in parts: random labels, and logits raised at them by a random amount."""
    labels = np.random.default_rng(0).integers(0, n_classes, n_samples)
    with zipfile.ZipFile(path, "w") as archive:
        with archive.open("labels.npy", "w", force_zip64=True) as member:
            npy_format.write_array(member, labels)
        with archive.open("logits.npy", "w", force_zip64=True) as member:
            header = {"descr": "<f4", "fortran_order": False, "shape": (n_samples, n_classes)}
            npy_format.write_array_header_1_0(member, header)
            for start in range(0, n_samples, ROWS_AT_A_TIME):
                drawn = np.random.default_rng(start + 1)
                some = labels[start : start + ROWS_AT_A_TIME]
                logits = drawn.normal(0, 1, (len(some), n_classes)).astype(np.float32)
                raised = drawn.exponential(SHARPNESS / 2, len(some))
                logits[np.arange(len(some)), some] += raised.astype(np.float32)
                member.write(logits.tobytes())


def calibrate(
    client: httpx.Client, path: Path, peak: Peak, **parts: tuple[str | None, bytes | str]
) -> dict[str, float]:
    """Calibrate with these parts; return the observed seconds of each stage."""
    stages: dict[str, float] = {}
    with looked_at(peak, lambda: "upload"), path.open("rb") as file:
        started = time.perf_counter()
        sent = {"calibration": ("set", file), **parts}
        answer = client.post("/calibrate", files=sent)
        answer.raise_for_status()
        stages["upload"] = time.perf_counter() - started
    stage, last = "queued", time.perf_counter()
    with looked_at(peak, lambda: stage):
        while True:
            found = client.get(answer.headers["location"]).json()
            now = time.perf_counter()
            stages[stage] = stages.get(stage, 0.0) + now - last
            last = now
            if found["status"] not in ("queued", "running"):
                break
            stage = (found["progress"] or {"stage": "queued"})["stage"]
            time.sleep(SAMPLE_SECONDS)
    if found["status"] != "succeeded":
        raise SystemExit(f"the calibration {found['status']}: {found['error']}")
    return stages


@contextmanager
def looked_at(peak: Peak, stage: Callable[[], str]) -> Iterator[None]:
    """Measure repeatedly while the block runs."""
    done = threading.Event()

    def look() -> None:
        while not done.wait(SAMPLE_SECONDS):
            peak.look(stage())

    thread = threading.Thread(target=look)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


def arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--samples", type=int, default=1_000_000)
    parser.add_argument("--classes", type=int, default=1000)
    return parser.parse_args()


if __name__ == "__main__":
    main()

"""Measure what /predict adds to the model itself: one digit, JSON, warm.

    python benchmarks/predict_overhead.py [--requests 2000]

Starts the service on a free port with its own data folder and calibrates the digits example. Then
it alternates, in blocks, between requests over one open connection and bare ``session.run`` calls
of the same model in this process.
"""

import argparse
import os
import platform
import re
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import httpx
import numpy as np
import onnxruntime

DIGITS = Path(__file__).parent.parent / "examples" / "digits"
BLOCK = 100


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--requests", type=int, default=2000)
    requests = parser.parse_args().requests
    with tempfile.TemporaryDirectory() as folder:
        server, address = start_service(folder)
        try:
            with httpx.Client(base_url=address, timeout=60) as client:
                calibrate(client)
                served, bare = measure(client, requests)
        finally:
            server.terminate()
            server.wait(30)
    print_table(served, bare)


def start_service(folder: str) -> tuple[subprocess.Popen[str], str]:
    settings = {"HOWSURE_DATA_DIR": folder, "HOWSURE_PORT": "0", "HOWSURE_DEVICE": "cpu"}
    server = subprocess.Popen(
        [sys.executable, "-m", "service", "serve"],
        env=os.environ | settings,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert server.stderr is not None
    for line in server.stderr:
        found = re.search(r"http://[\d.]+:\d+", line)
        if found:
            return server, found[0]
    raise SystemExit("the service did not start")


def calibrate(client: httpx.Client) -> None:
    files = {
        "model": (DIGITS / "model.onnx").read_bytes(),
        "calibration": (DIGITS / "calibration.npz").read_bytes(),
        "config": (None, '{"name": "digits"}'),
    }
    answer = client.post("/calibrate", files=files, headers={"Prefer": "wait=120"})
    assert answer.status_code == httpx.codes.CREATED, answer.text


def measure(client: httpx.Client, requests: int) -> tuple[list[float], list[float]]:
    row = np.load(DIGITS / "evaluation.npz")["inputs"][:1].astype(np.float32)
    body = {"calibration": "digits", "inputs": row.tolist()}
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(
        DIGITS / "model.onnx", options, providers=["CPUExecutionProvider"]
    )

    def ask() -> None:
        assert client.post("/predict", json=body).status_code == httpx.codes.OK

    def run() -> None:
        session.run(None, {"inputs": row})

    served: list[float] = []
    bare: list[float] = []
    for call in (ask, run):
        timed(call, BLOCK)
    for _ in range(max(1, requests // BLOCK)):
        served += timed(ask, BLOCK)
        bare += timed(run, BLOCK)
    return served, bare


def timed(call, times: int) -> list[float]:  # noqa: ANN001 - any callable
    seconds = []
    for _ in range(times):
        start = time.perf_counter()
        call()
        seconds.append(time.perf_counter() - start)
    return seconds


def print_table(served: list[float], bare: list[float]) -> None:
    print(f"{platform.processor() or platform.machine()}, {os.cpu_count()} cores,", end=" ")
    print(f"Python {platform.python_version()}, onnxruntime {onnxruntime.__version__}\n")
    print("| one digit, warm | p50, µs | p99, µs | p50 over bare |")
    print("|---|---:|---:|---:|")
    base = statistics.median(bare)
    for name, seconds in (("bare `session.run`", bare), ("`POST /predict`, JSON", served)):
        p50, p99 = statistics.median(seconds), np.quantile(seconds, 0.99)
        print(f"| {name} | {p50 * 1e6:.0f} | {p99 * 1e6:.0f} | {p50 / base:.1f} |")


if __name__ == "__main__":
    main()

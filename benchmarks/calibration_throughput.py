"""Compare the speed of a calibration with the model alone, on one machine and on a cluster.

    python benchmarks/calibration_throughput.py [--rows 200000] [--hidden 2048] [--repeats 3]

Makes a seeded perceptron and a set. In each repeat it measures rows per second of ``session.run``
over the set in memory; of the service, from the first row to the last record; and of a Dask
scheduler with one worker, and with two. Each session has one thread, each worker one core. Prints
Markdown, and ratios of two measurements of the same repeat.
"""

import argparse
import itertools
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import httpx
import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper
from serve.server_process import end_in_order_when_told, service

FEATURES = 784
CLASSES = 10
BATCH = 256
POLL_SECONDS = 0.2


def main() -> None:
    given = arguments()
    end_in_order_when_told()
    with tempfile.TemporaryDirectory(prefix="howsure-benchmark-") as scratch:
        folder = Path(scratch)
        model, inputs, labels = made(given.rows, given.hidden)
        (folder / "model.onnx").write_bytes(model)
        np.savez(folder / "set.npz", x=inputs, labels=labels)
        session = bare_session(model)
        batch_ms = batch_seconds(session, inputs) * 1000
        ways: dict[str, Callable[[], float]] = {
            "session.run": lambda: bare(session, inputs),
            "service": lambda: calibrated(folder, given.rows),
            "Dask, 1 worker": lambda: on_cluster(folder, given.rows, 1),
            "Dask, 2 workers": lambda: on_cluster(folder, given.rows, 2),
        }
        rates: dict[str, list[float]] = {name: [] for name in ways}
        for _ in range(given.repeats):
            for name, way in ways.items():
                rates[name].append(way())
    print(f"{given.rows:,} rows of {FEATURES} features, {batch_ms:.1f} ms a batch of {BATCH}\n")
    print("| way | rows/s, median | of session.run | of 1 worker |\n| --- | ---: | ---: | ---: |")
    for name, found in rates.items():
        shares = [ratio(found, rates[other]) for other in ("session.run", "Dask, 1 worker")]
        print(f"| {name} | {statistics.median(found):,.0f} | {shares[0]:.2f} | {shares[1]:.2f} |")
    print(f"\n{os.cpu_count()} cores ({platform.machine()}), load {os.getloadavg()[0]:.1f}")


def ratio(found: list[float], other: list[float]) -> float:
    """Return the median of the ratios within each repeat."""
    return statistics.median(a / b for a, b in zip(found, other, strict=True))


def made(n_rows: int, hidden: int) -> tuple[bytes, np.ndarray, np.ndarray]:
    """Return a perceptron of two hidden layers, inputs, and labels, half of which it finds."""
    drawn = np.random.default_rng(0)
    sizes = (FEATURES, hidden, hidden, CLASSES)
    weights = [
        drawn.normal(0, 1 / np.sqrt(a), (a, b)).astype(np.float32)
        for a, b in itertools.pairwise(sizes)
    ]
    names = ["x", "a", "b", "logits"]
    nodes, last = [], len(weights) - 1
    for i in range(len(weights)):
        nodes.append(helper.make_node("MatMul", [names[i], f"w{i}"], [f"m{i}"]))
        kind = "Identity" if i == last else "Relu"
        nodes.append(helper.make_node(kind, [f"m{i}"], [names[i + 1]]))
    graph = helper.make_graph(
        nodes,
        "perceptron",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", FEATURES])],
        [helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["N", CLASSES])],
        [numpy_helper.from_array(weight, f"w{i}") for i, weight in enumerate(weights)],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)
    onnx.checker.check_model(model)
    inputs = drawn.normal(0, 1, (n_rows, FEATURES)).astype(np.float32)
    return model.SerializeToString(), inputs, drawn.integers(0, CLASSES, n_rows)


def bare_session(model: bytes) -> onnxruntime.InferenceSession:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])


def batch_seconds(session: onnxruntime.InferenceSession, inputs: np.ndarray) -> float:
    times = []
    for _ in range(10):
        started = time.perf_counter()
        session.run(None, {"x": inputs[:BATCH]})
        times.append(time.perf_counter() - started)
    return statistics.median(times)


def bare(session: onnxruntime.InferenceSession, inputs: np.ndarray) -> float:
    """Return rows per second of the session alone."""
    started = time.perf_counter()
    for start in range(0, len(inputs), BATCH):
        session.run(None, {"x": inputs[start : start + BATCH]})
    return len(inputs) / (time.perf_counter() - started)


def calibrated(folder: Path, n_rows: int, **settings: str) -> float:
    """Return rows per second of a calibration, from the first row to the last record."""
    options = {"device": "cpu", "threads": "1"} | settings
    with service(**options) as ours, httpx.Client(base_url=f"http://{ours.address}") as client:
        files = {
            "model": ("model.onnx", (folder / "model.onnx").read_bytes()),
            "calibration": ("set.npz", (folder / "set.npz").read_bytes()),
            "config": (None, json.dumps({"measures": ["neg_log_pmax"], "top_k": [1]})),
        }
        location = client.post("/calibrate", files=files, timeout=600).headers["location"]
        started = ended = None
        while ended is None:
            found = client.get(location).json()
            stage = (found["progress"] or {}).get("stage")
            if found["status"] == "failed":
                raise SystemExit(f"the calibration failed: {found['error']}")
            if started is None and stage == "calibration":
                started = time.perf_counter()
            if stage not in (None, "calibration") or found["status"] == "succeeded":
                ended = time.perf_counter()
            time.sleep(POLL_SECONDS)
        if started is None:
            raise SystemExit("too few rows: the records were made between two looks")
        return n_rows / (ended - started)


def on_cluster(folder: Path, n_rows: int, n_workers: int) -> float:
    """Return rows per second through a scheduler whose workers have one core each."""
    with ExitStack() as stack:
        artifacts = stack.enter_context(tempfile.TemporaryDirectory(prefix="howsure-benchmark-"))
        address = stack.enter_context(scheduler(folder))
        for core in range(n_workers):
            stack.enter_context(worker(address, core, artifacts))
        wait_for_workers(address, n_workers)
        return calibrated(folder, n_rows, scheduler=address, artifacts_url=artifacts)


@contextmanager
def scheduler(folder: Path) -> Iterator[str]:
    described = folder / "scheduler.json"
    described.unlink(missing_ok=True)
    words = ["--port", "0", "--scheduler-file", str(described), "--no-dashboard"]
    with dask("scheduler", words, {}):
        while not described.exists():
            time.sleep(POLL_SECONDS)
        yield json.loads(described.read_text())["address"]


@contextmanager
def worker(address: str, core: int, artifacts: str) -> Iterator[None]:
    settings = {
        "HOWSURE_ARTIFACTS_URL": artifacts,
        "HOWSURE_DEVICE": "cpu",
        "HOWSURE_THREADS": "1",
    }
    words = [address, "--nthreads", "2", "--no-nanny", "--no-dashboard"]
    with dask("worker", [*words, "--local-directory", artifacts], settings, core=core):
        yield


@contextmanager
def dask(
    kind: str, words: list[str], settings: dict[str, str], *, core: int | None = None
) -> Iterator[None]:
    command = [sys.executable, "-m", f"distributed.cli.dask_{kind}", *words, "--host", "127.0.0.1"]
    if core is not None:
        command = ["taskset", "-c", str(core), *command]
    with subprocess.Popen(  # noqa: S603 - our own interpreter
        command,
        env=os.environ | settings,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as process:
        try:
            yield
        finally:
            process.kill()


def wait_for_workers(address: str, n_workers: int) -> None:
    from distributed import Client

    with Client(address, set_as_default=False) as client:
        client.wait_for_workers(n_workers, timeout=60)


def arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--hidden", type=int, default=2048)
    parser.add_argument("--repeats", type=int, default=3)
    return parser.parse_args()


if __name__ == "__main__":
    main()

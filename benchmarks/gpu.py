"""Measure what the uncertainty head and the runner add to a model on a GPU.

    python benchmarks/gpu.py [--device cuda:0] [--batches 1 8 32 128 256] [--repeats 20]
    python benchmarks/gpu.py --device cpu --quick

ResNet-50 and ViT-B/16 with random weights, in FP32, TF32 and FP16. Three things take turns on the
same rows in host memory: the bare model in ONNX Runtime with bound inputs and outputs, which
returns its logits; the same with the head, which returns the head's outputs instead; and
``RunnerPool.predict``, the same in a child process. Milliseconds are the median wall time of a
batch, with all transfers. The runner never uses TF32: where the bare model does, the last columns
are FP32.

``--quick`` takes small networks and batches to test the script; its numbers mean nothing.
"""

import argparse
import os
import platform
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnxruntime
from gpu_models import FULL, SMALL, ResNet, VisionTransformer

from service.child.onnx.session import CPU, bound_run, preload_cuda, providers, session_options
from service.errors import InferenceFailed
from service.graph.description import OutputChoice
from service.graph.load import load_onnx_model
from service.graph.serving import build_serving_graph
from service.runner.messages.onnx_models import OnnxModelFiles
from service.runner.pool import RunnerPool

DTYPES = {"FP32": "float32", "TF32": "float32", "FP16": "float16"}
TOP_K = (1, 5)
BATCHES, QUICK_BATCHES = (1, 8, 32, 128, 256), (1, 8)
WARMING_RUNS = 3


class Bound:
    """A graph in a session of this process, with bound inputs and outputs."""

    def __init__(self, data: bytes, outputs: list[str], device: str, *, tf32: bool) -> None:
        offered = providers(device)
        if device != "cpu":
            name, settings = offered[0]
            offered[0] = (name, settings | {"use_tf32": str(int(tf32))})
        self._session = onnxruntime.InferenceSession(data, session_options(1), providers=offered)
        assert (self._session.get_providers()[0] == CPU) == (device == "cpu")
        self._outputs = outputs or [output.name for output in self._session.get_outputs()]

    def run(self, images: np.ndarray) -> int:
        """Run, and return the number of returned bytes."""
        options = onnxruntime.RunOptions()
        answers = bound_run(self._session, self._outputs, {"images": images}, options)
        return sum(answer.nbytes for answer in answers)


@dataclass(frozen=True)
class Contenders:
    """One contender; it runs a batch and returns the number of returned bytes."""

    bare: Callable[[np.ndarray], int]
    head: Callable[[np.ndarray], int]
    served: Callable[[np.ndarray], int]


def with_head(data: bytes, n_classes: int) -> bytes:
    choice = OutputChoice("logits", "logits", "logits", "its name", n_classes=n_classes)
    model = build_serving_graph(load_onnx_model(data), choice, top_k=TOP_K)
    return model.SerializeToString()


def serving(pool: RunnerPool, path: Path, trial: np.ndarray) -> Callable[[np.ndarray], int]:
    """Load a file in a child; return the function that runs it."""
    files = OnnxModelFiles(path)
    said = {"output_name": "logits", "output_kind": "logits"}
    resolved = pool.inspect(files, {"images": trial}, top_k=TOP_K, **said).resolved

    def ask(images: np.ndarray) -> int:
        answer = pool.predict(files, resolved, {"images": images})
        columns = (answer.top_classes, answer.top_scores, *answer.uncertainty.values())
        return sum(column.nbytes for column in columns)

    return ask


def measure(contenders: Contenders, images: np.ndarray, repeats: int) -> tuple[list, list]:
    """Return the median milliseconds of a batch, and the returned bytes, of each."""
    runs = (contenders.bare, contenders.head, contenders.served)
    for _ in range(WARMING_RUNS):
        back = [run(images) for run in runs]
    seconds: list[list[float]] = [[] for _ in runs]
    for _ in range(repeats):
        for run, taken in zip(runs, seconds, strict=True):
            start = time.perf_counter()
            run(images)
            taken.append(time.perf_counter() - start)
    return [1e3 * statistics.median(taken) for taken in seconds], back


def lines(
    name: str, shape: ResNet | VisionTransformer, precision: str, options: argparse.Namespace
) -> Iterator[str]:
    """Yield the lines of one model in one precision."""
    dtype = DTYPES[precision]
    data = shape.build(dtype)
    tf32 = precision == "TF32"
    rng = np.random.default_rng(1)
    largest = rng.random((max(options.batches), 3, shape.image, shape.image), dtype=np.float32)
    largest = largest.astype(dtype)
    with tempfile.TemporaryDirectory() as folder, pool_on(options.device) as pool:
        path = Path(folder) / "model.onnx"
        path.write_bytes(data)
        contenders = Contenders(
            bare=Bound(data, ["logits"], options.device, tf32=tf32).run,
            head=Bound(with_head(data, shape.classes), [], options.device, tf32=tf32).run,
            served=serving(pool, path, largest[:8]),
        )
        for batch in options.batches:
            images = np.ascontiguousarray(largest[:batch])
            (bare, head, served), back = measure(contenders, images, options.repeats)
            yield (
                f"| {name} | {precision} | {batch} | {bare:.2f} | {head:.2f} "
                f"| {head / bare - 1:+.1%} | {served:.2f} | {served / bare - 1:+.1%} "
                f"| {images.nbytes / 1e3:.0f} | {back[0] / 1e3:.1f} | {back[2] / 1e3:.1f} |"
            )


def pool_on(device: str) -> RunnerPool:
    return RunnerPool(device=device, threads=1, load_timeout_s=300, run_timeout_s=120)


def why_not(device: str) -> str:
    """Return why the device cannot be used, or None."""
    with pool_on(device) as pool:
        try:
            pool.device()
        except InferenceFailed as error:
            return error.message
    return ""


def read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--batches", type=int, nargs="+")
    parser.add_argument("--precisions", nargs="+", choices=list(DTYPES), default=list(DTYPES))
    parser.add_argument("--repeats", type=int)
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args()
    options.batches = options.batches or (QUICK_BATCHES if options.quick else BATCHES)
    options.repeats = options.repeats or (3 if options.quick else 20)
    return options


def main() -> None:
    options = read_options()
    reason = why_not(options.device)
    if reason:
        print(f"skipped: {reason}")
        return
    if options.device != "cpu":
        preload_cuda()
    print(f"{options.device}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f},", end=" ")
    print(f"Python {platform.python_version()}, onnxruntime {onnxruntime.__version__}\n")
    print(
        "| model | precision | batch | bare, ms | with head, ms | more | served, ms | more", end=" "
    )
    print("| kB there | kB back, bare | kB back, served |")
    print("|---|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|")
    for name, shape in (SMALL if options.quick else FULL).items():
        for precision in options.precisions:
            if precision == "TF32" and options.device == "cpu":
                continue  # which has none
            for line in lines(name, shape, precision, options):
                print(line, flush=True)


if __name__ == "__main__":
    main()

"""Measure time and memory of reading a very large archive of pictures.

    python benchmarks/large_pictures.py [--gib 5] [--format tar|zip] [--service]

Packs generated JPEGs of 500 x 375, a few of them repeatedly, into an archive; reads all of it with
the preset `imagenet` in a child process, in batches of the size of shards; prints that process's
maximum memory, and pictures per second. With ``--service`` it sends the archive and a small model
to its own service, and measures the memory of all its processes until the calibration has ended.
"""

import argparse
import io
import json
import os
import platform
import subprocess
import sys
import tarfile
import tempfile
import time
import zipfile
from collections.abc import Iterator
from pathlib import Path

import httpx
import numpy as np
from large_calibration import Peak, calibrate, print_stages
from onnx import TensorProto, helper, numpy_helper
from PIL import Image
from serve.server_process import end_in_order_when_told, service

from howsure.preprocessing import PRESETS
from service.child.reading.open_set import open_dataset
from service.runner.messages.dataset import shard_rows
from service.runner.messages.limits import DatasetLimits
from service.runner.messages.reading import Reading

WIDTH, HEIGHT = 500, 375
N_DISTINCT = 16
N_CLASSES = 10
SAMPLE_SECONDS = 0.05


def main() -> None:
    given = arguments()
    if given.read:
        read(given.read)
        return
    end_in_order_when_told()
    with tempfile.TemporaryDirectory(prefix="howsure-large-") as scratch:
        path = Path(scratch) / "calibration"
        {"tar": write_tar, "zip": write_zip}[given.format](path, int(given.gib * 2**30))
        size = path.stat().st_size
        if given.service:
            through_service(path)
            return
        n_pictures, seconds, peak = measured(path)
    print(
        f"{n_pictures:,} pictures of {WIDTH} x {HEIGHT}, a {given.format} of {size / 2**30:.2f} "
        f"GiB: {seconds:.1f} s, {n_pictures / seconds:.0f} a second; "
        f"peak PSS {peak.pss:.0f} MiB, RSS {peak.rss:.0f} MiB."
    )
    print(f"{os.cpu_count()} cores ({platform.machine()}), Python {platform.python_version()}")


def through_service(path: Path) -> None:
    """Calibrate a small model on an archive; print the time and the memory of each stage."""
    with (
        service() as ours,
        httpx.Client(base_url=f"http://{ours.address}", timeout=3600) as client,
    ):
        peak = Peak(ours.pid)
        stages = calibrate(
            client,
            path,
            peak,
            model=("model.onnx", small_model()),
            config=(None, json.dumps({"preprocessing": "imagenet", "bins": 10, "folds": 2})),
        )
    print(f"{path.stat().st_size / 2**30:.2f} GiB of pictures of {WIDTH} x {HEIGHT}")
    print_stages(stages, peak)


def small_model() -> bytes:
    """Return a convolution of pictures to ten scores."""
    rng = np.random.default_rng(0)
    weights = rng.normal(0, 0.02, (N_CLASSES, 3, 32, 32)).astype(np.float32)
    nodes = [
        helper.make_node("Conv", ["pictures", "weights"], ["seen"], strides=[32, 32]),
        helper.make_node("GlobalMaxPool", ["seen"], ["most"]),
        helper.make_node("Flatten", ["most"], ["logits"]),
    ]
    graph = helper.make_graph(
        nodes,
        "small",
        [helper.make_tensor_value_info("pictures", TensorProto.FLOAT, ["n", 3, 224, 224])],
        [helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["n", N_CLASSES])],
        [numpy_helper.from_array(weights, "weights")],
    )
    opset = helper.make_opsetid("", 17)
    model: bytes = helper.make_model(graph, ir_version=8, opset_imports=[opset]).SerializeToString()
    return model


def measured(path: Path) -> tuple[int, float, Peak]:
    """Read a set in a child process; return the number of pictures, seconds and memory."""
    command = [sys.executable, __file__, "--read", str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:  # noqa: S603 - this file
        peak = Peak(child.pid)
        while child.poll() is None:
            peak.look("read")
            time.sleep(SAMPLE_SECONDS)
        answer = child.stdout.read() if child.stdout else ""
    if child.returncode:
        raise SystemExit(f"the reading process ended with {child.returncode}")
    n_pictures, seconds = answer.split()
    return int(n_pictures), float(seconds), peak


def read(path: Path) -> None:
    """Read a whole set; print the number of pictures and the time."""
    started = time.perf_counter()
    n_pictures = 0
    reading = Reading(preprocessing=PRESETS["imagenet"])
    with open_dataset(
        path, location="calibration", limits=DatasetLimits(), reading=reading
    ) as dataset:
        for batch in dataset.batches(shard_rows(dataset.info)):
            n_pictures += len(batch.labels)
    print(n_pictures, time.perf_counter() - started)


def members(size: int) -> Iterator[tuple[str, bytes]]:
    """Yield names and contents of pictures of the requested total size."""
    contents = [jpeg(seed) for seed in range(N_DISTINCT)]
    written = 0
    while written < size:
        number = written // 1024
        yield f"{number % N_CLASSES}/{number:012d}.jpg", contents[number % N_DISTINCT]
        written += len(contents[number % N_DISTINCT])


def jpeg(seed: int) -> bytes:
    """Return a picture of coarse and fine noise, about as large as a photograph."""
    rng = np.random.default_rng(seed)
    coarse = rng.normal(127, 60, (HEIGHT // 25, WIDTH // 25, 3)).repeat(25, 0).repeat(25, 1)
    pixels = np.clip(coarse + rng.normal(0, 14, coarse.shape), 0, 255).astype(np.uint8)
    content = io.BytesIO()
    Image.fromarray(pixels).save(content, "JPEG", quality=90)
    return content.getvalue()


def write_tar(path: Path, size: int) -> None:
    with path.open("wb") as file:
        for name, content in members(size):
            member = tarfile.TarInfo(name)
            member.size = len(content)
            file.write(member.tobuf() + content + bytes(-len(content) % tarfile.BLOCKSIZE))
        file.write(bytes(2 * tarfile.BLOCKSIZE))


def write_zip(path: Path, size: int) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in members(size):
            archive.writestr(name, content)


def arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--gib", type=float, default=5.0)
    parser.add_argument("--format", choices=["tar", "zip"], default="tar")
    parser.add_argument("--service", action="store_true")
    parser.add_argument("--read", type=Path, help=argparse.SUPPRESS)
    return parser.parse_args()


if __name__ == "__main__":
    main()

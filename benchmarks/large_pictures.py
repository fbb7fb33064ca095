"""Pictures in an archive that is larger than memory should have to be.

    python benchmarks/large_pictures.py [--gib 5] [--format tar|zip]

Packs generated JPEGs of 500 x 375, a few of them again and again, into an archive; reads all of it
with the preset `imagenet` in a process of its own, in the batches that a set is kept in; prints the
most memory that process had at any time, and how many pictures it read in a second.
"""

import argparse
import io
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

import numpy as np
from large_calibration import Peak
from PIL import Image

from service.datasets import DatasetLimits, Reading, open_dataset
from service.datasets.shards import shard_rows
from service.pictures.preprocessing import PRESETS

WIDTH, HEIGHT = 500, 375
N_DISTINCT = 16
N_CLASSES = 10
SAMPLE_SECONDS = 0.05


def main() -> None:
    given = arguments()
    if given.read:
        read(given.read)
        return
    with tempfile.TemporaryDirectory(prefix="howsure-large-") as scratch:
        path = Path(scratch) / "calibration"
        {"tar": write_tar, "zip": write_zip}[given.format](path, int(given.gib * 2**30))
        size = path.stat().st_size
        n_pictures, seconds, peak = measured(path)
    print(
        f"{n_pictures:,} pictures of {WIDTH} x {HEIGHT}, a {given.format} of {size / 2**30:.2f} "
        f"GiB: {seconds:.1f} s, {n_pictures / seconds:.0f} a second; "
        f"peak PSS {peak.pss:.0f} MiB, RSS {peak.rss:.0f} MiB."
    )
    print(f"{os.cpu_count()} cores ({platform.machine()}), Python {platform.python_version()}")


def measured(path: Path) -> tuple[int, float, Peak]:
    """Read a set in a process of its own; return its pictures, the seconds and the memory."""
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
    """Read a whole set; print how many pictures it had and how long it took."""
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
    """Yield names and contents of pictures, together as large as is asked."""
    contents = [jpeg(seed) for seed in range(N_DISTINCT)]
    written = 0
    while written < size:
        number = written // 1024
        yield f"{number % N_CLASSES}/{number:012d}.jpg", contents[number % N_DISTINCT]
        written += len(contents[number % N_DISTINCT])


def jpeg(seed: int) -> bytes:
    """Return a picture of coarse and fine noise, about as large as a photograph is."""
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
    parser.add_argument("--read", type=Path, help=argparse.SUPPRESS)
    return parser.parse_args()


if __name__ == "__main__":
    main()

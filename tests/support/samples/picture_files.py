"""Picture files, and sets of them."""

import io
import struct
import tarfile
import zlib
from collections.abc import Mapping
from contextlib import AbstractContextManager
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
from dataset_files import LIMITS
from dataset_files import refusal as refusal_of_set
from dataset_files import write_members as write_zip
from numpy.typing import NDArray
from PIL import Image, ImageOps

from howsure.preprocessing import Preprocessing
from service.child.reading.open_set import open_dataset
from service.errors import InvalidInput
from service.runner.messages.dataset import Dataset
from service.runner.messages.reading import Reading


def scene(width: int, height: int, *, seed: int = 0) -> NDArray[np.uint8]:
    """Return pixels [height, width, 3] with slopes and edges, so that resizing is seen."""
    rng = np.random.default_rng(seed)
    rows, columns = np.mgrid[0:height, 0:width]
    planes = [
        127 + 120 * np.sin((columns * a + rows * b) / rng.uniform(2, 9) + c)
        for a, b, c in rng.uniform(-1, 1, (3, 3))
    ]
    pixels = np.stack(planes, axis=-1)
    pixels[height // 3 : height // 2, width // 4 : width // 2] = rng.integers(0, 256, 3)
    return pixels.astype(np.uint8)


def encoded(image: Image.Image | NDArray[np.uint8], kind: str, **options: Any) -> bytes:
    """Return a picture as the bytes of a file."""
    if not isinstance(image, Image.Image):
        image = Image.fromarray(image)
    content = BytesIO()
    image.save(content, kind, **options)
    return content.getvalue()


def jpeg(width: int, height: int, *, seed: int = 0, quality: int = 85) -> bytes:
    """Return the bytes of a JPEG of this size."""
    return encoded(scene(width, height, seed=seed), "JPEG", quality=quality)


PNG = b"\x89PNG\r\n\x1a\n"
GREY, COLOURS = 0, 2


def png_chunk(kind: bytes, content: bytes) -> bytes:
    checksum = zlib.crc32(kind + content)
    return struct.pack(">L", len(content)) + kind + content + struct.pack(">L", checksum)


def png(
    width: int, height: int, bits: int, packed: bytes, *, colour: int = COLOURS, more: bytes = b""
) -> bytes:
    """Return a PNG whose head says this, with more chunks behind its head."""
    head = png_chunk(b"IHDR", struct.pack(">2L5B", width, height, bits, colour, 0, 0, 0))
    return PNG + head + more + png_chunk(b"IDAT", packed) + png_chunk(b"IEND", b"")


def reference_values(
    content: bytes,
    *,
    shorter_side: int,
    side: int,
    mean: tuple[float, ...],
    std: tuple[float, ...],
    filter_name: str = "BILINEAR",
) -> NDArray[np.float64]:
    """Return what torchvision's evaluation transforms make of a picture, [3, side, side]."""
    image = ImageOps.exif_transpose(Image.open(BytesIO(content))).convert("RGB")
    width, height = image.size
    if width < height:
        size = (shorter_side, int(shorter_side * height / width))
    else:
        size = (int(shorter_side * width / height), shorter_side)
    image = image.resize(size, getattr(Image.Resampling, filter_name))
    left = int(round((image.width - side) / 2.0))  # noqa: RUF046 - as torchvision has it
    top = int(round((image.height - side) / 2.0))  # noqa: RUF046
    pixels = np.asarray(image)[top : top + side, left : left + side] / 255.0
    return ((pixels - np.array(mean)) / np.array(std)).transpose(2, 0, 1)


AS_THEY_ARE = Reading(preprocessing=Preprocessing())
CLASSES = {"cat": 3, "dog": 2, "emu": 4}

Members = Mapping[str, bytes]


def plain_png(shade: int, *, width: int = 4, height: int = 3) -> bytes:
    """Return a PNG all of one shade, by which it is known again."""
    return encoded(np.full((height, width, 3), shade, np.uint8), "PNG")


def class_folders(prefix: str = "") -> dict[str, bytes]:
    """Return pictures in folders of their classes, in an order of no sense; shades count them."""
    names = [f"{prefix}{name}/{k}.png" for name, count in CLASSES.items() for k in range(count)]
    names = names[1::2] + names[::2]
    return {name: plain_png(shade) for shade, name in enumerate(names)}


def write_tar(path: Path, members: Members, form: int = tarfile.PAX_FORMAT) -> Path:
    """Write files as a tar archive; names that end in a slash are folders."""
    with tarfile.open(path, "w", format=form) as archive:
        for name, data in members.items():
            member = tarfile.TarInfo(name)
            member.size = len(data)
            if name.endswith("/"):
                member.type = tarfile.DIRTYPE
            archive.addfile(member, io.BytesIO(data))
    return path


WRITERS = {"zip": write_zip, "tar": write_tar}


def opened(
    path: Path, reading: Reading = AS_THEY_ARE, **options: object
) -> AbstractContextManager[Dataset]:
    """Open a set as its part of a calibration."""
    return open_dataset(path, location="calibration", limits=LIMITS, reading=reading, **options)


def shades_and_labels(dataset: Dataset, size: int = 4) -> tuple[list[int], list[int]]:
    """Return the shade of each picture, and its label, from the batches."""
    shades: list[int] = []
    labels: list[int] = []
    for batch in dataset.batches(size):
        pixels = batch.arrays["pixels"]
        assert batch.start == len(shades)
        assert pixels.dtype == np.uint8
        assert (pixels == pixels[:, :1, :1, :1]).all()
        shades += pixels[:, 0, 0, 0].tolist()
        labels += batch.labels.tolist()
    return shades, labels


def refusal(path: Path, reading: Reading = AS_THEY_ARE, **options: object) -> InvalidInput:
    """Read a whole set and return the error that refused it."""
    error = refusal_of_set(path, reading=reading, **options)
    (violation,) = error.violations
    assert violation.location.startswith("calibration")
    assert error.message.isprintable()
    assert len(error.message) < 500
    return error


def refused_at(path: Path, reading: Reading = AS_THEY_ARE, **options: object) -> str:
    return refusal(path, reading, **options).violations[0].location

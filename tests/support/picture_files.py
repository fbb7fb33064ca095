"""Pictures as files, made from a seed, and what plain Pillow and numpy make of them."""

from io import BytesIO
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageOps


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

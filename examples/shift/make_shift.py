"""Change the digits of the evaluation set in six ways at five intensities, and list the files.

python examples/shift/make_shift.py FOLDER
"""

import argparse
import csv
from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

Pictures = NDArray[np.float32]  # shape (n, 8, 8), 0 to 16
EVALUATION = Path(__file__).parents[1] / "digits" / "evaluation.npz"
INTENSITIES = range(1, 6)
DARKEST = 16.0


def rotation(pictures: Pictures, step: int) -> Pictures:
    """Rotate by 9 degrees a step."""
    return ndimage.rotate(pictures, 9 * step, axes=(1, 2), reshape=False, order=1)


def translation(pictures: Pictures, step: int) -> Pictures:
    """Move to the right by .4 pixels a step."""
    return ndimage.shift(pictures, (0, 0, 0.4 * step), order=1)


def blur(pictures: Pictures, step: int) -> Pictures:
    """Blur with a standard deviation of .3 pixels a step."""
    return ndimage.gaussian_filter(pictures, (0, 0.3 * step, 0.3 * step))


def noise(pictures: Pictures, step: int) -> Pictures:
    """Add noise with a standard deviation of 1.2 a step."""
    return pictures + np.random.default_rng(step).normal(0.0, 1.2 * step, pictures.shape)


def contrast(pictures: Pictures, step: int) -> Pictures:
    """Take 17 % of the contrast a step."""
    mean = pictures.mean(axis=(1, 2), keepdims=True)
    return mean + (1.0 - 0.17 * step) * (pictures - mean)


def darkness(pictures: Pictures, step: int) -> Pictures:
    """Darken by 1.6 a step."""
    return pictures + 1.6 * step


CHANGES: dict[str, Callable[[Pictures, int], Pictures]] = {
    change.__name__: change for change in (rotation, translation, blur, noise, contrast, darkness)
}


def write_sets(folder: Path) -> Path:
    """Write the sets, and return the manifest that lists them."""
    folder.mkdir(parents=True, exist_ok=True)
    with np.load(EVALUATION) as arrays:
        inputs, labels = arrays["inputs"], arrays["labels"]
    pictures = inputs.astype(np.float32).reshape(-1, 8, 8)
    rows: list[tuple[str, str, int]] = [("unchanged.npz", "", 0)]
    np.savez(folder / "unchanged.npz", inputs=inputs.astype(np.float32), labels=labels)
    for name, change in CHANGES.items():
        for step in INTENSITIES:
            changed = np.clip(change(pictures, step), 0.0, DARKEST).astype(np.float32)
            file = f"{name}-{step}.npz"
            np.savez(folder / file, inputs=changed.reshape(inputs.shape), labels=labels)
            rows.append((file, name, step))
    manifest = folder / "shifts.csv"
    with manifest.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(("file", "type", "intensity"))
        writer.writerows(rows)
    return manifest


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    print(write_sets(parser.parse_args().folder))

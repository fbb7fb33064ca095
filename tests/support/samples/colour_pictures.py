"""Plain pictures, and a model that tells their colours apart on one scale of its input."""

import io
import zipfile
from collections.abc import Sequence
from typing import Any

import numpy as np
from graph_models import constant, make_model, steps, value
from numpy.typing import NDArray
from picture_files import encoded

IMAGENET = ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))
HALVES = ((0.5, 0.5, 0.5), (0.5, 0.5, 0.5))
SIDE = 4
# Of each class, on the scale of ImageNet's normalisation; neighbours on the way to black mix.
COLOURS = np.array(
    [[-1.4, -1.4, -1.4], [-0.4, -0.5, -0.4], [0.6, 0.4, 0.5], [1.5, 1.5, 1.4], [0.3, -1.2, 1.2]]
)
NOISE = 0.45


def colour_set(
    n_samples: int, *, seed: int = 0, sort: bool = False
) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Return pixels [n, side, side, 3], and labels."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, len(COLOURS), n_samples)
    if sort:
        labels = np.sort(labels)
    mean, std = (np.array(values) for values in IMAGENET)
    colours = COLOURS[labels] + NOISE * rng.normal(size=(n_samples, 3))
    pixels = np.clip(np.round(255 * (colours * std + mean)), 0, 255).astype(np.uint8)
    return np.broadcast_to(pixels[:, None, None], (n_samples, SIDE, SIDE, 3)).copy(), labels


def colour_model(
    mean: Sequence[float],
    std: Sequence[float],
    *,
    scale: float = 1.0,
    layout: str = "nchw",
    step: int = 1,
) -> bytes:
    """Return the best model of `colour_set` with inputs ``(pixels / 255 * scale - mean) / std``.

    With a ``step`` of -1 its channels are blue, green and red.
    """
    own_mean, own_std = (np.array(values)[::step] for values in IMAGENET)
    centres = ((COLOURS[:, ::step] * own_std + own_mean) * scale - mean) / std
    precision = (np.array(std) / own_std / scale / NOISE) ** 2
    weights: Any = (centres * precision).T
    bias = -0.5 * (centres**2 * precision).sum(axis=1)
    axes = [2, 3] if layout == "nchw" else [1, 2]
    shape = ("N", 3, SIDE, SIDE) if layout == "nchw" else ("N", SIDE, SIDE, 3)
    model = make_model(
        steps(f"colour = ReduceMean<axes = {axes}, keepdims = 0>(x); y = Gemm(colour, w, b)"),
        inputs=[value("x", shape)],
        outputs=[value("y", ("N", len(COLOURS)))],
        initializers=[constant("w", weights), constant("b", bias)],
    )
    return bytes(model.SerializeToString())


def zip_of(
    pixels: NDArray[np.uint8], labels: NDArray[np.int64], names: Sequence[str] = "01234"
) -> bytes:
    """Return an archive with a folder of pictures for each class, sorted by class."""
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        for row in np.argsort(labels, kind="stable"):
            name = f"{names[labels[row]]}/{row}.png"
            archive.writestr(name, encoded(pixels[row], "PNG"))
    return content.getvalue()

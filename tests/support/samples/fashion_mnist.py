"""Real Fashion-MNIST data, where it is present, and a model of pictures."""

from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest
import sample_strategies
from graph_models import constant, make_model, node, value
from numpy.typing import NDArray

from howsure.statistics.records.records import Records

DATA = Path(__file__).parents[4] / "shared" / "data" / "fashion_mnist"
# Tests with smaller sets, mostly of digits, show the same rules without the data.
REQUIRES_DATA = [
    pytest.mark.slow,
    pytest.mark.skipif(not DATA.is_dir(), reason="no copy of Fashion-MNIST"),
]


def images_and_labels(half: str) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the images and labels of the calibration or evaluation half."""
    with np.load(DATA / f"{half}_float32.npz") as data:
        return data["inputs"], data["labels"]


def logits_of(model: str, images: NDArray[Any]) -> NDArray[Any]:
    """Return the logits of a network for some images."""
    session = onnxruntime.InferenceSession(
        DATA / f"{model}.onnx", providers=["CPUExecutionProvider"]
    )
    parts = np.array_split(images.astype(np.float32), 10)
    return np.concatenate([session.run(None, {"input": part})[0] for part in parts])


def records_of(logits: NDArray[Any], labels: NDArray[Any], of: NDArray[Any]) -> Records:
    """Return records of Top-1 and Top-5; ties are broken by ``of``, the images or logits."""
    return sample_strategies.records_of(logits.astype(np.float64), labels, inputs=of, top_k=(1, 5))


N_CLASSES = 4
SIDE = 224


def probe_weights() -> NDArray[np.float32]:
    """Return what the output ``probe`` weighs each value of the input with, [3, 224, 224].

    Whatever is turned, moved, swapped or scaled shows in the sum.
    """
    return np.random.default_rng(11).choice([-1.0, 1.0], (3, SIDE, SIDE)).astype(np.float32) / 512


def probed(values: NDArray[np.floating]) -> float:
    """Return the output ``probe`` for one picture's values."""
    return float((values.astype(np.float64) * probe_weights()).sum())


def residual_network() -> bytes:
    """Return a network of convolution, batch norm, a residual block, pooling and a linear layer.

    Its input is ``image``, [N, 3, 224, 224]; its outputs are ``logits`` and ``probe``.
    """
    rng = np.random.default_rng(7)
    n = 4  # channels
    nodes = [
        node("Conv", ["image", "w0"], ["c0"], strides=[4, 4], pads=[3, 3, 3, 3]),
        node("BatchNormalization", ["c0", "scale", "bias", "mean", "variance"], ["n0"]),
        node("Relu", ["n0"], ["r0"]),
        node("Conv", ["r0", "w1"], ["c1"], pads=[1, 1, 1, 1]),
        node("BatchNormalization", ["c1", "scale", "bias", "mean", "variance"], ["n1"]),
        node("Add", ["n1", "r0"], ["sum"]),
        node("Relu", ["sum"], ["r1"]),
        node("GlobalAveragePool", ["r1"], ["pooled"]),
        node("Flatten", ["pooled"], ["features"]),
        node("Gemm", ["features", "w2", "b2"], ["logits"]),
        node("Mul", ["image", "probe_weights"], ["weighed"]),
        node("ReduceSum", ["weighed", "axes"], ["probe"], keepdims=0),
    ]
    initializers = {
        "w0": rng.normal(0, 0.1, (n, 3, 7, 7)),
        "w1": rng.normal(0, 0.2, (n, n, 3, 3)),
        "w2": rng.normal(0, 3, (n, N_CLASSES)),
        "b2": np.zeros(N_CLASSES),
        "scale": np.ones(n),
        "bias": np.full(n, 0.1),
        "mean": np.zeros(n),
        "variance": np.ones(n),
        "probe_weights": probe_weights(),
    }
    return make_model(
        nodes,
        inputs=[value("image", ("N", 3, SIDE, SIDE))],
        outputs=[value("logits", ("N", N_CLASSES)), value("probe", ("N",))],
        initializers=[
            *(constant(name, array) for name, array in initializers.items()),
            constant("axes", [1, 2, 3], np.int64),
        ],
    ).SerializeToString()

"""Real Fashion-MNIST data, where it is present."""

from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest
import sample_strategies
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

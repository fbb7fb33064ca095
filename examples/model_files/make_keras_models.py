"""Export small Keras networks with ``model.export``, with their own answers.

Not run by the tests, which need no Keras: the files are committed. To make them again::

    python -m venv /tmp/keras && /tmp/keras/bin/pip install keras==3.15.1 torch==2.13.0 onnxscript
    KERAS_BACKEND=torch /tmp/keras/bin/python examples/model_files/make_keras_models.py

Weights are random from a fixed seed.
"""

from pathlib import Path

import keras
import numpy as np
from keras import layers
from make_torch_models import forget_paths

FOLDER = Path(__file__).parents[2] / "tests/data/onnx"
# The last layer: its number of units and its function.
LAST = {"softmax": (3, "softmax"), "sigmoid": (1, "sigmoid"), "logits": (3, None)}


if __name__ == "__main__":
    rows = np.random.default_rng(8).normal(size=(40, 6)).astype(np.float32)
    found = {"rows": rows}
    for name, (units, function) in LAST.items():
        keras.utils.set_random_seed(5)
        hidden = layers.Dense(8, activation="relu")
        last = layers.Dense(units, activation=function)
        model = keras.Sequential(
            [keras.Input((6,), name="rows"), hidden, layers.BatchNormalization(), last]
        )
        found[name] = model.predict(rows, verbose=0)
        path = FOLDER / f"keras_{name}.onnx"
        model.export(path, format="onnx", verbose=False)
    forget_paths("keras_*.onnx")
    np.savez_compressed(FOLDER / "keras_references.npz", **found)

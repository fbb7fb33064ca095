"""Classifiers as PyTorch, scikit-learn and TensorFlow write them, and rows to run them on."""

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from graph_models import constant, function_call, make_model, steps, value
from onnx import helper
from sklearn.datasets import load_digits
from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.svm import LinearSVC

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # its own imports are deprecated
    from skl2onnx import to_onnx

FOLDER = Path(__file__).parents[2] / "data" / "onnx"
FEATURES = 16


@dataclass(frozen=True)
class ClassifierFile:
    """A file, what it takes, what lies beside it, and what the caller says of its outputs."""

    data: bytes
    draw: Callable[[int], Mapping[str, np.ndarray]]
    batch: int | None = None
    companions: Mapping[str, bytes] = field(default_factory=dict)
    said: Mapping[str, Any] = field(default_factory=dict)


def draw_rows(n_rows: int, *shape: int, dtype: str = "float32") -> np.ndarray:
    """Return rows of many contrasts: certain answers and uncertain ones."""
    rng = np.random.default_rng(n_rows)
    contrast = np.exp(rng.normal(size=(n_rows, *[1] * len(shape))))
    return (contrast * rng.normal(size=(n_rows, *shape))).astype(dtype)


def stored(
    name: str, *shape: int, takes: str = "images", batch: int | None = None, companion: str = ""
) -> ClassifierFile:
    """Return a file of tests/data/onnx, which takes rows of this shape."""
    return ClassifierFile(
        (FOLDER / f"{name}.onnx").read_bytes(),
        lambda n_rows: {takes: draw_rows(n_rows, *(shape or (1, 8, 8)))},
        batch=batch,
        companions={companion: (FOLDER / companion).read_bytes()} if companion else {},
    )


def skl2onnx_model(estimator: Any, rows: np.ndarray, labels: np.ndarray, **options: Any) -> Any:
    """Fit an estimator and return the model that skl2onnx makes of it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a short fit does not converge; skl2onnx's deprecations
        return to_onnx(estimator.fit(rows, labels), rows[:1], options=options or None)


def sklearn(
    estimator: Any, labels: str = "integers", *, dtype: str = "float32", **options: Any
) -> ClassifierFile:
    pixels, digits = load_digits(return_X_y=True)
    pixels = (pixels[:400] / 16).astype(dtype)
    digits = digits[:400]
    wanted = {
        "integers": digits,
        "strings": np.array([f"digit {digit}" for digit in digits]),
        "binary": (digits < 5).astype(int),
    }[labels]
    model = skl2onnx_model(estimator, pixels, wanted, **options)

    def draw(n_rows: int) -> Mapping[str, np.ndarray]:
        rng = np.random.default_rng(n_rows)
        rows = pixels[rng.integers(len(pixels), size=n_rows)]
        return {"X": (rows + rng.normal(0, 0.2, rows.shape)).astype(dtype)}

    return ClassifierFile(model.SerializeToString(), draw)


def perceptron(
    n_classes: int,
    end: str = "",
    *,
    nodes: Sequence[Any] = (),
    dtype: str = "float32",
    shape: tuple[Any, ...] | None = None,
    said: Mapping[str, Any] | None = None,
    **options: Any,
) -> ClassifierFile:
    """Return a network of two layers to the logits ``z``, and the nodes that make ``y`` of them."""
    rng = np.random.default_rng(n_classes)
    columns = n_classes if shape is None else 1
    weights = {
        "w0": rng.normal(size=(FEATURES, 24)) / FEATURES**0.5,
        "b0": rng.normal(size=24),
        "w1": rng.normal(size=(24, columns)),
        "b1": rng.normal(size=columns),
    }
    last = [*nodes, *(steps(end) if end else [])]
    text = "h0 = MatMul(x, w0); h1 = Add(h0, b0); h2 = Relu(h1); "
    text += f"{'z' if last else 'y'} = Gemm(h2, w1, b1)"
    kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    model = make_model(
        [*steps(text), *last],
        inputs=[value("x", ("batch", FEATURES), kind)],
        outputs=[value("y", shape or ("batch", n_classes), kind)],
        initializers=[constant(name, array, dtype) for name, array in weights.items()],
        **options,
    )
    return ClassifierFile(
        model.SerializeToString(),
        lambda n_rows: {"x": draw_rows(n_rows, FEATURES, dtype=dtype)},
        said=said or {},
    )


def with_function() -> ClassifierFile:
    """Return a network whose logits are doubled by a local function, as PyTorch 2 writes some."""
    call, options = function_call(steps("o = Add(a, a)"), "z", "y", opset=18)
    return perceptron(10, nodes=call, opset=18, **options)


def logistic(labels: str = "integers", **options: Any) -> ClassifierFile:
    return sklearn(LogisticRegression(), labels, **options)


SIGMOID, SOFTMAX = "y = Sigmoid(z)", "y = Softmax<axis=-1>(z)"


FILES: dict[str, Callable[[], ClassifierFile]] = {
    "torch 11": lambda: stored("torch_legacy_11"),
    "torch 17, softmax": lambda: stored("torch_legacy_17_softmax"),
    "torch 18, batches of 4": lambda: stored("torch_dynamo_18_fixed", batch=4),
    "torch 18, weights beside it": lambda: stored(
        "torch_dynamo_18_external", companion="torch_dynamo_18_external.onnx.data"
    ),
    "torch 23, softmax": lambda: stored("torch_dynamo_23_softmax"),
    "sklearn, logistic": lambda: logistic(zipmap=False),
    "sklearn, logistic, maps": lambda: logistic(zipmap=True),
    "sklearn, logistic, strings in maps": lambda: logistic("strings"),
    "sklearn, logistic, two classes": lambda: logistic("binary"),
    "sklearn, logistic, float64": lambda: logistic(dtype="float64", zipmap=False),
    "sklearn, network": lambda: sklearn(MLPClassifier((8,), max_iter=30, random_state=0)),
    "sklearn, boosted trees": lambda: sklearn(_boosted()),
    "sklearn, boosted trees, two classes": lambda: sklearn(_boosted(), "binary"),
    "sklearn, forest": lambda: sklearn(RandomForestClassifier(7, max_depth=4, random_state=0)),
    "sklearn, support vectors": lambda: sklearn(LinearSVC(random_state=0)),
    "keras, softmax": lambda: stored("keras_softmax", 6, takes="rows"),
    "keras, logits": lambda: stored("keras_logits", 6, takes="rows"),
    "2 classes, opset 12": lambda: perceptron(2, "y = Softmax<axis=1>(z)", opset=12),
    "1 column, opset 13, sigmoid": lambda: perceptron(2, SIGMOID, opset=13, shape=("batch", 1)),
    "1000 classes, opset 11": lambda: perceptron(1000, opset=11),
    "float16, opset 13": lambda: perceptron(10, opset=13, dtype="float16"),
    "float16, opset 18, softmax": lambda: perceptron(10, SOFTMAX, opset=18, dtype="float16"),
    "float64, opset 22, softmax": lambda: perceptron(10, SOFTMAX, opset=22, dtype="float64"),
    "log-softmax, opset 19": lambda: perceptron(10, "y = LogSoftmax(z)", opset=19),
    "probabilities that the caller names, opset 20": lambda: perceptron(
        10, SIGMOID, opset=20, said={"kind": "probabilities"}
    ),
    "a local function, opset 18": with_function,
    "opset 26, IR 13": lambda: perceptron(10, SOFTMAX, opset=26, ir_version=13),
}


def _boosted() -> GradientBoostingClassifier:
    return GradientBoostingClassifier(n_estimators=3, max_depth=2, random_state=0)

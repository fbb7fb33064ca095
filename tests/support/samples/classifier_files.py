"""Classifiers as PyTorch, scikit-learn and TensorFlow write them, and rows to run them on."""

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from graph_models import constant, make_model, node, value
from onnx import TensorProto, helper, load_from_string
from sklearn.datasets import load_digits
from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.svm import LinearSVC

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # its own imports are deprecated
    from skl2onnx import to_onnx

FOLDER = Path(__file__).parents[2] / "data" / "onnx"
TYPES = {
    "float16": TensorProto.FLOAT16,
    "float32": TensorProto.FLOAT,
    "float64": TensorProto.DOUBLE,
}
FEATURES = 16


@dataclass(frozen=True)
class ClassifierFile:
    """A file, what it takes, what lies beside it, and what the caller says of its outputs."""

    data: bytes
    draw: Callable[[int], Mapping[str, np.ndarray]]
    batch: int | None = None
    companions: Mapping[str, bytes] = field(default_factory=dict)
    said: Mapping[str, Any] = field(default_factory=dict)


def images(n_rows: int) -> np.ndarray:
    """Return images of many contrasts: certain answers and uncertain ones."""
    rng = np.random.default_rng(n_rows)
    contrast = np.exp(rng.normal(size=(n_rows, 1, 1, 1)))
    return (contrast * rng.normal(size=(n_rows, 1, 8, 8))).astype(np.float32)


def torch(name: str, *, batch: int | None = None, companion: str | None = None) -> ClassifierFile:
    return ClassifierFile(
        (FOLDER / f"{name}.onnx").read_bytes(),
        lambda n_rows: {"images": images(n_rows)},
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
    *ends: Any,
    opset: int = 17,
    dtype: str = "float32",
    shape: tuple[Any, ...] | None = None,
    ir_version: int = 8,
    **said: Any,
) -> ClassifierFile:
    """Return a network of two layers to the logits ``z``, and the nodes that make ``y`` of them."""
    rng = np.random.default_rng(n_classes)
    width = 24
    nodes = [
        node("MatMul", ["x", "w0"], ["h0"]),
        node("Add", ["h0", "b0"], ["h1"]),
        node("Relu", ["h1"], ["h2"]),
        node("Gemm", ["h2", "w1", "b1"], ["z" if ends else "y"]),
        *ends,
    ]
    columns = n_classes if shape is None else 1
    weights = {
        "w0": rng.normal(size=(FEATURES, width)) / FEATURES**0.5,
        "b0": rng.normal(size=width),
        "w1": rng.normal(size=(width, columns)),
        "b1": rng.normal(size=columns),
    }
    model = make_model(
        nodes,
        inputs=[value("x", ("batch", FEATURES), TYPES[dtype])],
        outputs=[value("y", shape or ("batch", n_classes), TYPES[dtype])],
        initializers=[constant(name, array, dtype) for name, array in weights.items()],
        opset=opset,
        ir_version=ir_version,
    )
    return ClassifierFile(model.SerializeToString(), lambda n: vectors(n, dtype), said=said)


def vectors(n_rows: int, dtype: str = "float32") -> Mapping[str, np.ndarray]:
    rng = np.random.default_rng(n_rows)
    contrast = np.exp(rng.normal(size=(n_rows, 1)))
    return {"x": (contrast * rng.normal(size=(n_rows, FEATURES))).astype(dtype)}


def tensorflow(opset: int, *, ends_in_softmax: bool = True) -> ClassifierFile:
    """Return a network as tf2onnx writes one: channels last, a Squeeze, names with / and :."""
    rng = np.random.default_rng(opset)
    scope = "StatefulPartitionedCall/sequential"
    steps = [
        node("Transpose", ["input_1:0"], [f"{scope}/conv2d/BiasAdd__6:0"], perm=[0, 3, 1, 2]),
        node(
            "Conv",
            [f"{scope}/conv2d/BiasAdd__6:0", f"{scope}/kernel:0", f"{scope}/bias:0"],
            [f"{scope}/conv2d/BiasAdd:0"],
            kernel_shape=[3, 3],
        ),
        node("Relu", [f"{scope}/conv2d/BiasAdd:0"], [f"{scope}/conv2d/Relu:0"]),
        node("ReduceMax", [f"{scope}/conv2d/Relu:0"], [f"{scope}/max:0"], axes=[2, 3], keepdims=0),
        node("MatMul", [f"{scope}/max:0", f"{scope}/dense/kernel:0"], [f"{scope}/dense/MatMul:0"]),
    ]
    last = "Identity:0" if not ends_in_softmax else f"{scope}/dense/BiasAdd:0"
    steps.append(node("Add", [f"{scope}/dense/MatMul:0", f"{scope}/dense/bias:0"], [last]))
    if ends_in_softmax:
        steps.append(node("Softmax", [last], ["Identity:0"], axis=-1 if opset >= 13 else 1))
    weights = {
        f"{scope}/kernel:0": rng.normal(size=(8, 1, 3, 3)) / 3,
        f"{scope}/bias:0": rng.normal(size=8),
        f"{scope}/dense/kernel:0": rng.normal(size=(8, 10)),
        f"{scope}/dense/bias:0": rng.normal(size=10),
    }
    model = make_model(
        steps,
        inputs=[value("input_1:0", ("unk__12", 8, 8, 1))],
        outputs=[value("Identity:0", ("unk__13", 10))],
        initializers=[constant(name, array) for name, array in weights.items()],
        opset=opset,
    )
    return ClassifierFile(
        model.SerializeToString(),
        lambda n_rows: {"input_1:0": images(n_rows).transpose(0, 2, 3, 1)},
    )


def with_function() -> ClassifierFile:
    """Return a network whose logits are doubled by a local function, as PyTorch 2 writes some."""
    found = perceptron(10, helper.make_node("scale", ["z"], ["y"], domain="ours"), opset=18)
    model = load_from_string(found.data)
    body = [node("Add", ["logits", "logits"], ["class"])]
    imports = [helper.make_opsetid("", 18)]
    function = helper.make_function("ours", "scale", ["logits"], ["class"], body, imports)
    model.functions.append(function)
    model.opset_import.append(helper.make_opsetid("ours", 1))
    return ClassifierFile(model.SerializeToString(), found.draw)


def logistic(labels: str = "integers", **options: Any) -> ClassifierFile:
    return sklearn(LogisticRegression(), labels, **options)


SIGMOID = node("Sigmoid", ["z"], ["y"])


def _softmax(opset: int) -> Any:
    return node("Softmax", ["z"], ["y"], axis=1 if opset < 13 else -1)


FILES: dict[str, Callable[[], ClassifierFile]] = {
    "torch 11": lambda: torch("torch_legacy_11"),
    "torch 17, softmax": lambda: torch("torch_legacy_17_softmax"),
    "torch 18, batches of 4": lambda: torch("torch_dynamo_18_fixed", batch=4),
    "torch 18, weights beside it": lambda: torch(
        "torch_dynamo_18_external", companion="torch_dynamo_18_external.onnx.data"
    ),
    "torch 23, softmax": lambda: torch("torch_dynamo_23_softmax"),
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
    "tensorflow 11, softmax": lambda: tensorflow(11),
    "tensorflow 15, logits": lambda: tensorflow(15, ends_in_softmax=False),
    "2 classes, opset 12": lambda: perceptron(2, _softmax(12), opset=12),
    "1 column, opset 13, sigmoid": lambda: perceptron(2, SIGMOID, opset=13, shape=("batch", 1)),
    "1000 classes, opset 11": lambda: perceptron(1000, opset=11),
    "float16, opset 13": lambda: perceptron(10, opset=13, dtype="float16"),
    "float16, opset 18, softmax": lambda: perceptron(10, _softmax(18), opset=18, dtype="float16"),
    "float64, opset 22, softmax": lambda: perceptron(10, _softmax(22), opset=22, dtype="float64"),
    "log-softmax, opset 19": lambda: perceptron(10, node("LogSoftmax", ["z"], ["y"]), opset=19),
    "probabilities that the caller names, opset 20": lambda: perceptron(
        10, SIGMOID, opset=20, kind="probabilities"
    ),
    "a local function, opset 18": with_function,
    "opset 26, IR 13": lambda: perceptron(10, _softmax(26), opset=26, ir_version=13),
}


def _boosted() -> GradientBoostingClassifier:
    return GradientBoostingClassifier(n_estimators=3, max_depth=2, random_state=0)

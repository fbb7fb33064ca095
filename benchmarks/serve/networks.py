"""Seeded ONNX classifiers of 28 x 28 pixels in ten classes, and rows and labels for them."""

import io
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

CLASSES = 10
PIXELS = 784
IMAGE = (1, 28, 28)
OPSET = 17
IR_VERSION = 10
SPREAD = 2.0  # standard deviation of each logit, so that rows fall into all bins
SAMPLE_ROWS = 256

Build = Callable[["Graph"], np.ndarray]


@dataclass(frozen=True)
class Network:
    """A classifier as a file, and the shape of one of its rows."""

    name: str
    onnx_model: bytes
    shape: tuple[int, ...]

    def rows(self, n: int, *, seed: int) -> np.ndarray:
        """Return seeded rows: bytes divided by 255, as pixels are."""
        drawn = np.random.default_rng(seed).integers(0, 256, size=(n, *self.shape))
        return (drawn / 255).astype(np.float32)

    def session(self, threads: int = 1) -> onnxruntime.InferenceSession:
        """Load it in this process."""
        return session(self.onnx_model, threads)

    def labelled_set(self, n: int, *, seed: int) -> bytes:
        """Return an ``.npz`` of rows with labels drawn from the model's own softmax."""
        inputs = self.rows(n, seed=seed)
        logits = self.session().run(None, {"input": inputs})[0].astype(np.float64)
        noise = np.random.default_rng(seed + 1).gumbel(size=logits.shape)
        file = io.BytesIO()
        np.savez(file, inputs=inputs, labels=(logits + noise).argmax(axis=1))
        return file.getvalue()


@dataclass
class Graph:
    """Nodes in a row, with random weights."""

    generator: np.random.Generator
    nodes: list[onnx.NodeProto] = field(default_factory=list)
    weights: list[onnx.TensorProto] = field(default_factory=list)
    last: str = "input"

    def add(self, operator: str, *arrays: np.ndarray, **attributes: Any) -> None:  # noqa: ANN401 - as onnx has it
        """Append a node that takes the last output, and these arrays."""
        number = len(self.nodes)
        names = [f"weight_{number}_{i}" for i in range(len(arrays))]
        for name, array in zip(names, arrays, strict=True):
            self.weights.append(numpy_helper.from_array(array.astype(np.float32), name))
        output = f"value_{number}"
        self.nodes.append(helper.make_node(operator, [self.last, *names], [output], **attributes))
        self.last = output

    def draw(self, *shape: int, fan: int) -> np.ndarray:
        """Return weights that keep the variance of the values."""
        return np.asarray(self.generator.standard_normal(shape) * np.sqrt(2 / fan))

    def convolve(self, n_in: int, n_out: int) -> None:
        """Append a convolution of 3 x 3 and its activation."""
        kernel = self.draw(n_out, n_in, 3, 3, fan=9 * n_in)
        self.add("Conv", kernel, np.zeros(n_out), kernel_shape=[3, 3], pads=[1, 1, 1, 1])
        self.add("Relu")

    def pool(self) -> None:
        """Append a pooling that halves height and width."""
        self.add("MaxPool", kernel_shape=[2, 2], strides=[2, 2])

    def save(self, shape: tuple[int, ...]) -> bytes:
        """Return the file."""
        made = helper.make_graph(
            [*self.nodes, helper.make_node("Identity", [self.last], ["logits"])],
            "benchmark",
            [helper.make_tensor_value_info("input", TensorProto.FLOAT, ["batch", *shape])],
            [helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["batch", CLASSES])],
            self.weights,
        )
        model = helper.make_model(made, opset_imports=[helper.make_opsetid("", OPSET)])
        model.ir_version = IR_VERSION
        onnx.checker.check_model(model)
        return bytes(model.SerializeToString())


def session(onnx_model: bytes, threads: int) -> onnxruntime.InferenceSession:
    """Load a file on the CPU, without threads that spin."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    return onnxruntime.InferenceSession(onnx_model, options, providers=["CPUExecutionProvider"])


def _mlp(graph: Graph) -> np.ndarray:
    weights = graph.draw(PIXELS, 256, fan=PIXELS)
    graph.add("Gemm", weights, -0.5 * weights.sum(axis=0))
    graph.add("Relu")
    return graph.draw(256, CLASSES, fan=256)


def _conv(graph: Graph) -> np.ndarray:
    graph.convolve(1, 16)
    graph.pool()
    graph.convolve(16, 32)
    graph.pool()
    graph.add("Flatten")
    return graph.draw(32 * 49, CLASSES, fan=32 * 49)


def _heavy(graph: Graph) -> np.ndarray:
    graph.convolve(1, 32)
    graph.convolve(32, 64)
    graph.convolve(64, 64)
    graph.pool()
    graph.pool()
    graph.add("Flatten")
    return graph.draw(64 * 49, CLASSES, fan=64 * 49)


NETWORKS: dict[str, tuple[Build, tuple[int, ...]]] = {
    "mlp": (_mlp, (PIXELS,)),
    "conv": (_conv, IMAGE),
    "heavy": (_heavy, IMAGE),
}


def network(name: str, *, seed: int = 7) -> Network:
    """Build one of ``NETWORKS``; the last layer is scaled so that all logits have one spread."""
    build, shape = NETWORKS[name]
    graph = Graph(np.random.default_rng(seed))
    last = build(graph)
    graph.add("Gemm", last, np.zeros(CLASSES))
    raw = Network(name, graph.save(shape), shape)
    logits = raw.session().run(None, {"input": raw.rows(SAMPLE_ROWS, seed=seed)})[0]
    scale = SPREAD / logits.std(axis=0)
    graph.weights[-2].CopyFrom(_renamed(graph.weights[-2], last * scale))
    graph.weights[-1].CopyFrom(_renamed(graph.weights[-1], -logits.mean(axis=0) * scale))
    return Network(name, graph.save(shape), shape)


def _renamed(tensor: onnx.TensorProto, array: np.ndarray) -> onnx.TensorProto:
    return numpy_helper.from_array(array.astype(np.float32), tensor.name)

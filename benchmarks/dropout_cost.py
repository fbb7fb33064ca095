"""Measure what last-layer dropout adds to one run of a model, by passes and classes.

    python benchmarks/dropout_cost.py [FOLDER] [--batch 32] [--repeats 8]

The models are ``FOLDER/model.onnx`` for images of 28 x 28, and a ResNet-18 with random weights for
images of 32 x 32 with the stem for larger ones: the cheapest network of that shape, so its last
layer weighs most. Each serving graph, with and without last-layer dropout, runs in this process on
one CPU thread, in turns. Milliseconds are CPU time of a batch, the minimum of the repeats.
"""

import argparse
import os
import platform
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import onnxruntime
from onnx import ModelProto, TensorProto, helper, numpy_helper

from howsure.statistics.measures.noise import keep_mask
from service.graph.description import OutputChoice
from service.graph.load import load_onnx_model
from service.graph.noise.last_layer_dropout import expose_features
from service.graph.serving import build_serving_graph

OPSET, IR_VERSION = 17, 8
RATE = 0.1
PASSES = (10, 30, 100)
CLASSES = (10, 1000)
STAGES = ((64, 1), (128, 2), (256, 2), (512, 2))  # channels and first stride, two blocks each


@dataclass
class Network:
    """Builds a graph; convolutions contain their batch normalisation."""

    rng: np.random.Generator
    nodes: list = field(default_factory=list)
    weights: list = field(default_factory=list)

    def add(self, operator: str, *inputs: str, **attributes: object) -> str:
        """Append a node and return its output."""
        output = f"t{len(self.nodes)}"
        self.nodes.append(helper.make_node(operator, inputs, [output], **attributes))
        return output

    def weight(self, *shape: int, scale: float = 1.0) -> str:
        """Draw a normal weight and return its name."""
        name = f"w{len(self.weights)}"
        values = scale * self.rng.standard_normal(shape, dtype=np.float32)
        self.weights.append(numpy_helper.from_array(values.astype(np.float32), name))
        return name

    def convolution(
        self, x: str, channels: tuple[int, int], size: int, stride: int, *, gain: float = 1.0
    ) -> str:
        """Add a convolution between these numbers of channels, with He's scale times ``gain``."""
        scale = gain * (2 / (channels[0] * size * size)) ** 0.5
        kernel = self.weight(channels[1], channels[0], size, size, scale=scale)
        bias = self.weight(channels[1], scale=0.1)
        pads = [size // 2] * 4
        return self.add("Conv", x, kernel, bias, strides=[stride] * 2, pads=pads)

    def block(self, x: str, channels: tuple[int, int], stride: int) -> str:
        """Add a basic block: figure 2 of He et al., "Deep residual learning"."""
        inner = self.add("Relu", self.convolution(x, channels, 3, stride))
        # Smaller, so that the sums of random blocks do not grow from one to the next.
        inner = self.convolution(inner, (channels[1],) * 2, 3, 1, gain=0.5)
        if stride != 1 or channels[0] != channels[1]:
            x = self.convolution(x, channels, 1, stride)
        return self.add("Relu", self.add("Add", inner, x))


def resnet18(n_classes: int) -> bytes:
    """Return an ONNX file of ResNet-18, from ``images`` to ``logits``, with random weights."""
    network = Network(np.random.default_rng(0))
    x = network.add("Relu", network.convolution("images", (3, 64), 7, 2))
    x = network.add("MaxPool", x, kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4)
    before = 64
    for channels, stride in STAGES:
        x = network.block(x, (before, channels), stride)
        x = network.block(x, (channels, channels), 1)
        before = channels
    x = network.add("Flatten", network.add("GlobalAveragePool", x))
    weights = (network.weight(before, n_classes, scale=0.05), network.weight(n_classes, scale=0.1))
    network.nodes.append(helper.make_node("Gemm", [x, *weights], ["logits"]))
    float32 = TensorProto.FLOAT
    graph = helper.make_graph(
        network.nodes,
        "resnet18",
        [helper.make_tensor_value_info("images", float32, ["N", 3, 32, 32])],
        [helper.make_tensor_value_info("logits", float32, ["N", n_classes])],
        network.weights,
    )
    opsets = [helper.make_opsetid("", OPSET)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=IR_VERSION)
    return model.SerializeToString()


class Timed:
    """A graph in a session of one thread, and its minimum CPU time."""

    def __init__(self, model: ModelProto, inputs: np.ndarray) -> None:
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        options.inter_op_num_threads = 1
        self._session = onnxruntime.InferenceSession(
            model.SerializeToString(), options, providers=["CPUExecutionProvider"]
        )
        self._feeds = {self._session.get_inputs()[0].name: inputs}
        self.outputs = self._session.run(None, self._feeds)
        self.milliseconds = float("inf")

    def run(self) -> None:
        """Run once, and keep the time if it is the minimum."""
        start = time.process_time()
        self._session.run(None, self._feeds)
        self.milliseconds = min(self.milliseconds, 1e3 * (time.process_time() - start))


def measure(data: bytes, inputs: np.ndarray, repeats: int) -> tuple[Timed, dict[int, Timed]]:
    """Return the serving graph without dropout, and with these passes of the last layer."""
    bare = load_onnx_model(data)
    tensor = bare.graph.output[0].name
    n_classes = Timed(bare, inputs[:2]).outputs[0].shape[1]
    choice = OutputChoice(tensor, "logits", tensor, "its name", n_classes=n_classes)
    (features,) = Timed(expose_features(load_onnx_model(data), choice), inputs[:2]).outputs
    plain = Timed(build_serving_graph(load_onnx_model(data), choice, top_k=(1, 5)), inputs)
    dropped = {}
    for passes in PASSES:
        masks = [
            keep_mask(features.shape[1:], rate=RATE, seed=0, number=number, site=0)
            for number in range(passes)
        ]
        model = build_serving_graph(
            load_onnx_model(data), choice, top_k=(1, 5), last_layer_masks=np.stack(masks)
        )
        dropped[passes] = Timed(model, inputs)
    for _ in range(repeats):
        for timed in (plain, *dropped.values()):
            timed.run()
    return plain, dropped


def models(folder: Path | None) -> Iterator[tuple[str, int, bytes, tuple[int, ...]]]:
    """Yield name, classes, file and shape of one input."""
    for n_classes in CLASSES:
        yield "ResNet-18, 32 x 32", n_classes, resnet18(n_classes), (3, 32, 32)
    if folder is not None:
        yield "model.onnx", 10, (folder / "model.onnx").read_bytes(), (1, 28, 28)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", nargs="?", type=Path)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--repeats", type=int, default=8)
    options = parser.parse_args()
    print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}, one thread,", end=" ")
    print(f"Python {platform.python_version()}, onnxruntime {onnxruntime.__version__};", end=" ")
    print(f"batches of {options.batch}\n")
    print("| model | classes | passes | without, ms | with, ms | ratio | whole model each pass |")
    print("|---|---:|---:|---:|---:|---:|---:|")
    for name, n_classes, data, shape in models(options.folder):
        rng = np.random.default_rng(1)
        inputs = rng.random((options.batch, *shape), dtype=np.float32)
        plain, dropped = measure(data, inputs, options.repeats)
        for passes, timed in dropped.items():
            ratio = timed.milliseconds / plain.milliseconds
            print(
                f"| {name} | {n_classes} | {passes} | {plain.milliseconds:.1f} "
                f"| {timed.milliseconds:.1f} | {ratio:.2f} | {passes + 1} |"
            )


if __name__ == "__main__":
    main()

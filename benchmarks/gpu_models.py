"""Two networks for image classification, with seeded random weights.

ResNet-50 is table 1 of He et al., "Deep residual learning", with the stride in the 3 x 3
convolutions and each batch normalisation in the convolution before it; ViT-B/16 is table 1 of
Dosovitskiy et al., "An image is worth 16x16 words". Both map ``images`` to ``logits``.
"""

from dataclasses import dataclass, field

import numpy as np
from onnx import TensorProto, helper, numpy_helper

OPSET, IR_VERSION = 17, 8
ELEMENT_TYPES = {"float32": TensorProto.FLOAT, "float16": TensorProto.FLOAT16}


@dataclass
class Network:
    """Builds a graph of one type."""

    dtype: str
    rng: np.random.Generator = field(default_factory=lambda: np.random.default_rng(0))
    nodes: list = field(default_factory=list)
    weights: list = field(default_factory=list)

    def add(self, operator: str, *inputs: str, **attributes: object) -> str:
        """Append a node and return its output."""
        output = f"t{len(self.nodes)}"
        self.nodes.append(helper.make_node(operator, inputs, [output], **attributes))
        return output

    def constant(self, values: np.ndarray) -> str:
        """Add an array and return its name."""
        name = f"w{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(values, name))
        return name

    def weight(self, *shape: int, scale: float) -> str:
        """Draw a normal weight and return its name."""
        values = scale * self.rng.standard_normal(shape, dtype=np.float32)
        return self.constant(values.astype(self.dtype))

    def full(self, *shape: int, value: float) -> str:
        """Add an array of one value and return its name."""
        return self.constant(np.full(shape, value, self.dtype))

    def integers(self, *values: int) -> str:
        """Add a vector of integers and return its name."""
        return self.constant(np.array(values, np.int64))

    def linear(self, x: str, before: int, after: int) -> str:
        """Multiply the last axis by a matrix and add a bias."""
        weight = self.weight(before, after, scale=before**-0.5)
        return self.add("Add", self.add("MatMul", x, weight), self.full(after, value=0.01))

    def finish(self, name: str, x: str, image: int, classes: int) -> bytes:
        """Return the file, with ``x`` as its logits."""
        self.nodes.append(helper.make_node("Identity", [x], ["logits"]))
        kind = ELEMENT_TYPES[self.dtype]
        graph = helper.make_graph(
            self.nodes,
            name,
            [helper.make_tensor_value_info("images", kind, ["N", 3, image, image])],
            [helper.make_tensor_value_info("logits", kind, ["N", classes])],
            self.weights,
        )
        opsets = [helper.make_opsetid("", OPSET)]
        model = helper.make_model(graph, opset_imports=opsets, ir_version=IR_VERSION)
        return model.SerializeToString()


@dataclass(frozen=True)
class ResNet:
    """A residual network of bottleneck blocks; by default ResNet-50."""

    image: int = 224
    classes: int = 1000
    width: int = 64
    blocks: tuple[int, ...] = (3, 4, 6, 3)

    def build(self, dtype: str) -> bytes:
        """Return its ONNX file."""
        network = Network(dtype)
        x = network.add("Relu", _convolution(network, "images", 3, self.width, 7, 2))
        x = network.add("MaxPool", x, kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4)
        before = self.width
        for stage, count in enumerate(self.blocks):
            inner = self.width * 2**stage
            for number in range(count):
                stride = 2 if stage > 0 and number == 0 else 1
                x = _bottleneck(network, x, before, inner, stride)
                before = 4 * inner
        x = network.add("Flatten", network.add("GlobalAveragePool", x))
        x = network.linear(x, before, self.classes)
        return network.finish("resnet", x, self.image, self.classes)


def _convolution(
    network: Network, x: str, before: int, after: int, size: int, stride: int, gain: float = 1.0
) -> str:
    scale = gain * (2 / (before * size * size)) ** 0.5
    kernel = network.weight(after, before, size, size, scale=scale)
    bias = network.full(after, value=0.01)
    return network.add("Conv", x, kernel, bias, strides=[stride] * 2, pads=[size // 2] * 4)


def _bottleneck(network: Network, x: str, before: int, inner: int, stride: int) -> str:
    y = network.add("Relu", _convolution(network, x, before, inner, 1, 1))
    y = network.add("Relu", _convolution(network, y, inner, inner, 3, stride))
    # Smaller, so that the sums of random blocks do not grow from one to the next.
    y = _convolution(network, y, inner, 4 * inner, 1, 1, gain=0.3)
    if before != 4 * inner or stride != 1:
        x = _convolution(network, x, before, 4 * inner, 1, stride, gain=0.7)
    return network.add("Relu", network.add("Add", x, y))


@dataclass(frozen=True)
class VisionTransformer:
    """A vision transformer; by default ViT-B/16."""

    image: int = 224
    classes: int = 1000
    patch: int = 16
    width: int = 768
    layers: int = 12
    heads: int = 12

    @property
    def tokens(self) -> int:
        """Return the patches after the class token."""
        return (self.image // self.patch) ** 2 + 1

    def build(self, dtype: str) -> bytes:
        """Return its ONNX file."""
        network, width, patch = Network(dtype), self.width, self.patch
        kernel = network.weight(width, 3, patch, patch, scale=(3 * patch * patch) ** -0.5)
        x = network.add("Conv", "images", kernel, strides=[patch] * 2)
        x = network.add("Reshape", x, network.integers(0, width, -1))
        x = network.add("Transpose", x, perm=[0, 2, 1])
        # A row of zeros before the patches; what is added to it is the class token.
        x = network.add("Pad", x, network.integers(0, 1, 0, 0, 0, 0))
        x = network.add("Add", x, network.weight(1, self.tokens, width, scale=0.02))
        for _ in range(self.layers):
            x = network.add("Add", x, self._attention(network, _normalised(network, x, width)))
            x = network.add("Add", x, _perceptron(network, _normalised(network, x, width), width))
        x = _normalised(network, x, width)
        x = network.add("Gather", x, network.constant(np.array(0)), axis=1)
        x = network.linear(x, width, self.classes)
        return network.finish("vit", x, self.image, self.classes)

    def _attention(self, network: Network, x: str) -> str:
        size = self.width // self.heads
        x = network.linear(x, self.width, 3 * self.width)
        x = network.add("Reshape", x, network.integers(0, self.tokens, 3, self.heads, size))
        x = network.add("Transpose", x, perm=[2, 0, 3, 1, 4])
        query, key, value = (
            network.add("Gather", x, network.constant(np.array(part)), axis=0) for part in range(3)
        )
        key = network.add("Transpose", key, perm=[0, 1, 3, 2])
        query = network.add("Mul", query, network.full(value=size**-0.5))
        weights = network.add("Softmax", network.add("MatMul", query, key), axis=-1)
        x = network.add("Transpose", network.add("MatMul", weights, value), perm=[0, 2, 1, 3])
        x = network.add("Reshape", x, network.integers(0, self.tokens, self.width))
        return network.linear(x, self.width, self.width)


def _normalised(network: Network, x: str, width: int) -> str:
    scale, bias = network.full(width, value=1.0), network.full(width, value=0.0)
    return network.add("LayerNormalization", x, scale, bias, axis=-1, epsilon=1e-6)


def _perceptron(network: Network, x: str, width: int) -> str:
    x = network.linear(x, width, 4 * width)
    # GELU: x / 2 (1 + erf(x / sqrt 2)).
    erf = network.add("Erf", network.add("Mul", x, network.full(value=0.5**0.5)))
    gate = network.add("Mul", network.add("Add", erf, network.full(value=1.0)), x)
    return network.linear(network.add("Mul", gate, network.full(value=0.5)), 4 * width, width)


FULL = {"ResNet-50": ResNet(), "ViT-B/16": VisionTransformer()}
SMALL = {
    "small ResNet": ResNet(image=32, classes=10, width=8, blocks=(1, 1)),
    "small ViT": VisionTransformer(image=32, classes=10, patch=8, width=48, layers=2, heads=3),
}

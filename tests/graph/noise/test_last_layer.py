"""Which layer is the last, in graphs as exporters write them, and graphs without one."""

import re

import numpy as np
import pytest
from classifier_files import skl2onnx_model
from graph_models import (
    N_CLASSES,
    N_INPUTS,
    branched,
    constant,
    dropout,
    image_model,
    last_layer_model,
    load,
    network,
    node,
    opsets,
    steps,
    value,
)
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression

from service.errors import InvalidConfig
from service.graph.noise.last_layer import find_last_layer

RNG = np.random.default_rng(9)
CONSTANTS = [
    constant("V", RNG.normal(size=(N_CLASSES, N_INPUTS))),
    constant("b", np.ones(N_CLASSES)),
    constant("one", [1], np.int64),
    constant("Q", RNG.integers(0, 255, size=(N_INPUTS, N_CLASSES)), np.uint8),
    constant("scale", 0.01),
    constant("zero", 128, np.uint8),
    constant("turned", np.ones((3, 7))),
]


def ending_in(text, *others):
    return last_layer_model(*steps(text), *others, initializers=CONSTANTS)


def found(model, tensor="y"):
    layer = find_last_layer(load(model).graph, tensor)
    return layer.features, layer.rate, layer.operator


@pytest.mark.parametrize("opset", opsets(11, 12, 17, 23, 26))
def test_the_dropout_before_it_is_stepped_over_and_tells_the_rate(opset):
    model = network((), dropout("h1", "d1", 0.3, opset=opset), opset=opset)
    assert found(model) == ("h1", 0.3, "MatMul")


DROPPED = dropout("h1", "e1", 0.3)


@pytest.mark.parametrize(
    ("nodes", "features", "rate"),
    [
        ((), "h1", None),
        (steps("ratio = ReduceMax<keepdims=0>(x); d1 = Dropout(h1, ratio)"), "h1", None),
        ([*DROPPED, *steps("d1 = Flatten<axis=1>(e1)")], "d1", 0.3),
        ([*DROPPED, *steps("d1 = Relu(e1)")], "d1", None),
    ],
    ids=["none", "computed-ratio", "reshaped-after", "activated-after"],
)
def test_what_lies_before_the_layer_tells_the_features_and_the_rate(nodes, features, rate):
    assert found(network((), nodes)) == (features, rate, "MatMul")


TRANSPOSED = "a = Identity(W); t = Transpose(a); w = Mul(t, t); y = Gemm<transB=1>(h, w)"
# Written out: the scores depend on the layer alone.
SOFTMAX = (
    "z = MatMul(h, W); top = ReduceMax<axes=[1]>(z); below = Sub(z, top); e = Exp(below);"
    "sum = ReduceSum(e, one); y = Div(e, sum)"
)


LAYERS = [
    ("y = Gemm<transB=1, alpha=0.5>(h, V, b)", "h", "Gemm"),
    ("y = Gemm<transB=0, alpha=0.5>(h, W, b)", "h", "Gemm"),
    ("y = MatMul(x, W)", "x", "MatMul"),
    # Weights may be made from constants.
    ("w = DequantizeLinear(Q, scale, zero); y = MatMul(h, w)", "h", "MatMul"),
    (TRANSPOSED, "h", "Gemm"),
    ("w = Constant<value=float[6, 1] {1, 1, 1, 1, 1, 1}>(); y = MatMul(h, w)", "h", "MatMul"),
    (SOFTMAX, "h", "MatMul"),
]


@pytest.mark.parametrize(("text", "features", "operator"), LAYERS)
def test_layers_as_exporters_write_them(text, features, operator):
    assert found(ending_in(text)) == (features, None, operator)


POOLED = [
    "p = GlobalAveragePool(z); y = Flatten(p)",
    "r = Relu(z); y = ReduceMean<axes=[2, 3], keepdims=0>(r)",
    "y = Flatten(z)",
]


@pytest.mark.parametrize("kernel", ["", "<kernel_shape=[1, 1]>"])
@pytest.mark.parametrize("pooled", POOLED)
def test_a_convolution_of_single_pixels(pooled, kernel):
    model = image_model(*steps(f"z = Conv{kernel}(h, K); {pooled}"))
    assert found(model) == ("h", None, "Conv")


def test_an_old_files_weights_are_inputs_with_a_default():
    model = ending_in("y = MatMul(h, W)")
    model.graph.input.append(value("W", (N_INPUTS, N_CLASSES)))
    assert found(model) == ("h", None, "MatMul")


def refused(model, tensor="y"):
    with pytest.raises(InvalidConfig) as caught:
        find_last_layer(load(model).graph, tensor)
    (violation,) = caught.value.violations
    assert violation.location == "config.measures"
    assert violation.message.startswith("last_layer_dropout_variance: ")
    return violation.message


CLASSIFIERS = [
    (RandomForestClassifier(3, max_depth=2), "TreeEnsembleClassifier"),
    (LogisticRegression(), "LinearClassifier"),
]


@pytest.mark.parametrize(("estimator", "named"), CLASSIFIERS)
def test_classifiers_of_one_node_have_none(estimator, named):
    rows, labels = RNG.normal(size=(40, 4)).astype(np.float32), RNG.integers(0, 3, size=40)
    model = skl2onnx_model(estimator, rows, labels, zipmap=False)
    assert f"ai.onnx.ml.{named}" in refused(model, model.graph.output[1].name)


OTHER_ENDINGS = [
    ("y = Softmax(h)", "over Softmax, Relu they lead to the graph's input 'x'"),
    ("y = Conv(h, x)", "input 'x'"),
    ("y = MatMul(turned, h)", "on the left"),
    ("y = Gemm<transA=1>(h, W)", "transposes"),
    ("y = Gemm(h, W, h)", "addend"),
    ('y = Einsum<equation="nd,dk->nk">(h, W)', "Einsum"),
    ("y = Identity(W)", "do not depend"),
    ("y = MatMul(h, fed)", "graph's input"),
    (f"w = RandomNormal<shape=[{N_INPUTS}, {N_CLASSES}]>(); y = MatMul(h, w)", "RandomNormal"),
    ("z = MatMul(h, W); r = RandomNormalLike(z); y = Add(z, r)", "RandomNormalLike"),
    # A residual connection around the layer.
    ("z = MatMul(h, W); skipped = MatMul(x, W); y = Add(z, skipped)", "2 .* 'x', 'h'"),
]


@pytest.mark.parametrize(("text", "named"), OTHER_ENDINGS)
def test_other_endings(text, named):
    model = ending_in(text)
    model.graph.input.append(value("fed", (N_INPUTS, N_CLASSES)))
    assert re.search(named, refused(model))


def test_a_branch_after_the_layer():
    nodes = branched(steps("a = Neg(z)"), "z", "y")
    assert "If" in refused(ending_in("z = MatMul(h, W)", *nodes))


def test_a_wider_convolution():
    nodes = steps("z = Conv(h, K); y = Flatten(z)")
    assert "2x3" in refused(image_model(*nodes, kernel=np.ones((5, 3, 2, 3))))


def test_thousands_of_layers_are_counted_from_one_index():
    """With an index for each layer, 4,000 of them take a minute."""
    names = [f"p{i}" for i in range(4000)]
    layers = (node("Conv", ["h", "K"], [name]) for name in names)
    assert "4000" in refused(image_model(*layers, node("Concat", names, ["y"], axis=1)))

"""Which layer is the last, in graphs as exporters write them."""

import numpy as np
import pytest
from graph_models import (
    N_CLASSES,
    N_INPUTS,
    constant,
    dropout,
    image_model,
    last_layer_model,
    load,
    network,
    node,
    opsets,
    value,
)

from service.errors import InvalidConfig
from service.graph.noise.last_layer import find_last_layer

RNG = np.random.default_rng(9)


def found(model, tensor="y"):
    layer = find_last_layer(load(model).graph, tensor)
    return layer.features, layer.rate, layer.operator


@pytest.mark.parametrize("opset", opsets(11, 12, 17, 23, 26))
def test_the_dropout_before_it_is_stepped_over_and_tells_the_rate(opset):
    model = network((), dropout("h1", "d1", 0.3, opset=opset), opset=opset)
    assert found(model) == ("h1", 0.3, "MatMul")


COMPUTED_RATIO = [
    node("ReduceMax", ["x"], ["ratio"], keepdims=0),
    node("Dropout", ["h1", "ratio"], ["d1"]),
]
RESHAPED = [*dropout("h1", "e1", 0.3), node("Flatten", ["e1"], ["d1"], axis=1)]
ACTIVATED = [*dropout("h1", "e1", 0.3), node("Relu", ["e1"], ["d1"])]


@pytest.mark.parametrize(
    ("last", "features", "rate"),
    [
        ((), "h1", None),
        (COMPUTED_RATIO, "h1", None),
        (RESHAPED, "d1", 0.3),
        (ACTIVATED, "d1", None),
    ],
    ids=["none", "computed-ratio", "reshaped-after", "activated-after"],
)
def test_what_lies_before_the_layer_tells_the_features_and_the_rate(last, features, rate):
    assert found(network((), last)) == (features, rate, "MatMul")


@pytest.mark.parametrize("transposed", [0, 1])
def test_gemm(transposed):
    weights = constant("V", RNG.normal(size=(N_CLASSES, N_INPUTS)[:: 1 if transposed else -1]))
    gemm = node("Gemm", ["h", "V", "b"], ["y"], transB=transposed, alpha=0.5)
    model = last_layer_model(gemm, initializers=[weights, constant("b", np.ones(N_CLASSES))])
    assert found(model) == ("h", None, "Gemm")


def test_what_is_fed_may_be_the_features():
    assert found(last_layer_model(node("MatMul", ["x", "W"], ["y"]))) == ("x", None, "MatMul")


@pytest.mark.parametrize(
    "pooled",
    [
        [node("GlobalAveragePool", ["z"], ["p"]), node("Flatten", ["p"], ["y"])],
        [node("Relu", ["z"], ["r"]), node("ReduceMean", ["r"], ["y"], axes=[2, 3], keepdims=0)],
        [node("Flatten", ["z"], ["y"])],
    ],
)
@pytest.mark.parametrize("says_kernel", [False, True])
def test_a_convolution_of_single_pixels(pooled, says_kernel):
    attributes = {"kernel_shape": [1, 1]} if says_kernel else {}
    model = image_model(node("Conv", ["h", "K"], ["z"], **attributes), *pooled)
    assert found(model) == ("h", None, "Conv")


QUANTISED = [
    node("DequantizeLinear", ["Q", "scale", "zero"], ["weights"]),
    node("MatMul", ["h", "weights"], ["y"]),
]
COMPUTED = [
    node("Identity", ["W"], ["again"]),
    node("Transpose", ["again"], ["turned"], perm=[1, 0]),
    node("Mul", ["turned", "turned"], ["weights"]),
    node("Gemm", ["h", "weights"], ["y"], transB=1),
]
AS_NODE = [
    node("Constant", [], ["weights"], value=constant("", np.ones((N_INPUTS, N_CLASSES)))),
    node("MatMul", ["h", "weights"], ["y"]),
]


@pytest.mark.parametrize("nodes", [QUANTISED, COMPUTED, AS_NODE])
def test_weights_may_be_made_from_constants(nodes):
    quantised = [
        constant("Q", RNG.integers(0, 255, size=(N_INPUTS, N_CLASSES)), np.uint8),
        constant("scale", 0.01),
        constant("zero", 128, np.uint8),
    ]
    assert found(last_layer_model(*nodes, initializers=quantised))[0] == "h"


def test_what_follows_may_branch_and_join():
    """A softmax written out: the scores depend on the layer alone."""
    model = last_layer_model(
        node("MatMul", ["h", "W"], ["z"]),
        node("ReduceMax", ["z"], ["top"], axes=[1]),
        node("Sub", ["z", "top"], ["below"]),
        node("Exp", ["below"], ["e"]),
        node("ReduceSum", ["e", "one"], ["sum"]),
        node("Div", ["e", "sum"], ["y"]),
        initializers=[constant("one", [1], np.int64)],
    )
    assert found(model) == ("h", None, "MatMul")


def test_an_old_files_weights_are_inputs_with_a_default():
    model = last_layer_model(node("MatMul", ["h", "W"], ["y"]))
    model.graph.input.append(value("W", (N_INPUTS, N_CLASSES)))
    assert found(model) == ("h", None, "MatMul")


def test_thousands_of_layers_are_counted_from_one_index():
    """With an index for each layer, 4,000 of them take a minute."""
    names = [f"p{i}" for i in range(4000)]
    layers = (node("Conv", ["h", "K"], [name]) for name in names)
    model = image_model(*layers, node("Concat", names, ["y"], axis=1))
    with pytest.raises(InvalidConfig, match="they come from 4000 such layers"):
        find_last_layer(model.graph, "y")

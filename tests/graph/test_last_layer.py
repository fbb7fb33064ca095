"""Which layer is the last, in graphs as exporters write them."""

import re
import warnings

import numpy as np
import pytest
from graph_models import constant, make_model, node, value
from graph_noise import N_CLASSES, N_HIDDEN, N_INPUTS, WEIGHTS, dense, dropout, load, network
from onnx import TensorProto, helper

from service.errors import InvalidConfig
from service.graph.last_layer import find_last_layer

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # its own imports are deprecated
    from skl2onnx import to_onnx
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier

RNG = np.random.default_rng(9)
KERNEL = RNG.normal(size=(N_CLASSES, 3, 1, 1))


def found(model, tensor="y"):
    layer = find_last_layer(load(model).graph, tensor)
    return layer.features, layer.rate, layer.operator


def ending(*nodes, initializers=(), shape=("N", N_INPUTS), **others):
    """Return a model that makes y of x, past a rectifier that makes h, with weights W."""
    weights = [constant("W", RNG.normal(size=(N_INPUTS, N_CLASSES)))]
    return make_model(
        [node("Relu", ["x"], ["h"]), *nodes],
        inputs=[value("x", shape)],
        outputs=[value("y", None)],
        initializers=[*weights, *initializers],
        **others,
    )


def images(*nodes, **others):
    kernel = others.pop("kernel", KERNEL)
    return ending(
        *nodes, initializers=[constant("K", kernel)], shape=("N", 3, "height", "width"), **others
    )


def test_a_product_and_a_sum():
    assert found(network()) == ("h1", None, "MatMul")


@pytest.mark.parametrize("opset", [11, 12, 17, 23, 26])
def test_the_dropout_before_it_is_stepped_over_and_tells_the_rate(opset):
    model = network((), dropout("h1", "d1", 0.3, opset=opset), opset=opset)
    assert found(model) == ("h1", 0.3, "MatMul")


def test_a_computed_ratio_is_no_rate():
    drop = [
        node("ReduceMax", ["x"], ["ratio"], keepdims=0),
        node("Dropout", ["h1", "ratio"], ["d1"]),
    ]
    assert found(network((), drop)) == ("h1", None, "MatMul")


def test_dropout_before_a_change_of_shape_tells_the_rate_too():
    last = [*dropout("h1", "e1", 0.3), node("Flatten", ["e1"], ["d1"], axis=1)]
    assert found(network((), last)) == ("d1", 0.3, "MatMul")


def test_dropout_before_an_activation_does_not():
    last = [*dropout("h1", "e1", 0.3), node("Relu", ["e1"], ["d1"])]
    assert found(network((), last)) == ("d1", None, "MatMul")


@pytest.mark.parametrize("transposed", [0, 1])
def test_gemm(transposed):
    weights = constant("V", RNG.normal(size=(N_CLASSES, N_INPUTS)[:: 1 if transposed else -1]))
    gemm = node("Gemm", ["h", "V", "b"], ["y"], transB=transposed, alpha=0.5)
    model = ending(gemm, initializers=[weights, constant("b", np.ones(N_CLASSES))])
    assert found(model) == ("h", None, "Gemm")


def test_what_is_fed_may_be_the_features():
    assert found(ending(node("MatMul", ["x", "W"], ["y"]))) == ("x", None, "MatMul")


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
    model = images(node("Conv", ["h", "K"], ["z"], **attributes), *pooled)
    assert found(model) == ("h", None, "Conv")


def quantised():
    return [
        node("DequantizeLinear", ["Q", "scale", "zero"], ["weights"]),
        node("MatMul", ["h", "weights"], ["y"]),
    ], [
        constant("Q", RNG.integers(0, 255, size=(N_INPUTS, N_CLASSES)), np.uint8),
        constant("scale", 0.01),
        constant("zero", 128, np.uint8),
    ]


def computed():
    return [
        node("Identity", ["W"], ["again"]),
        node("Transpose", ["again"], ["turned"], perm=[1, 0]),
        node("Mul", ["turned", "turned"], ["weights"]),
        node("Gemm", ["h", "weights"], ["y"], transB=1),
    ], []


def as_node():
    tensor = helper.make_tensor(
        "t", TensorProto.FLOAT, [N_INPUTS, N_CLASSES], [0.5] * N_INPUTS * N_CLASSES
    )
    return [
        node("Constant", [], ["weights"], value=tensor),
        node("MatMul", ["h", "weights"], ["y"]),
    ], []


@pytest.mark.parametrize("make", [quantised, computed, as_node])
def test_weights_may_be_made_from_constants(make):
    nodes, initializers = make()
    assert found(ending(*nodes, initializers=initializers))[0] == "h"


def test_what_follows_may_branch_and_join():
    """A softmax written out: the scores depend on the layer alone."""
    model = ending(
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
    model = ending(node("MatMul", ["h", "W"], ["y"]))
    model.graph.input.append(value("W", (N_INPUTS, N_CLASSES)))
    assert found(model) == ("h", None, "MatMul")


@pytest.mark.parametrize("layers", [(8,), (8, 7)])
def test_scikit_learns_network(layers):
    rows, labels = RNG.normal(size=(60, 4)).astype(np.float32), RNG.integers(0, 3, size=60)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        estimator = MLPClassifier(layers, max_iter=5, random_state=0).fit(rows, labels)
        model = to_onnx(estimator, rows[:1], options={"zipmap": False})
    graph = load(model).graph
    layer = find_last_layer(graph, "probabilities")
    assert layer.operator == "MatMul"
    (maker,) = (step for step in graph.node if layer.features in step.output)
    assert maker.op_type == "Relu"


def refused(model, tensor="y"):
    with pytest.raises(InvalidConfig) as caught:
        find_last_layer(load(model).graph, tensor)
    (violation,) = caught.value.violations
    assert violation.location == "config.measures"
    assert violation.message.startswith("last_layer_dropout_variance: ")
    assert "a Gemm, MatMul or 1x1 Conv with constant weights" in violation.message
    return violation.message


def sklearn_model(estimator):
    rows, labels = RNG.normal(size=(40, 4)).astype(np.float32), RNG.integers(0, 3, size=40)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fitted = estimator.fit(rows, labels)
        return to_onnx(fitted, rows[:1], options={"zipmap": False})


@pytest.mark.parametrize(
    ("estimator", "named"),
    [
        (RandomForestClassifier(3, max_depth=2), "TreeEnsembleClassifier"),
        (LogisticRegression(), "LinearClassifier"),
    ],
)
def test_classifiers_of_one_node_have_none(estimator, named):
    model = sklearn_model(estimator)
    assert f"ai.onnx.ml.{named}" in refused(model, model.graph.output[1].name)


@pytest.mark.parametrize(
    ("nodes", "said"),
    [
        ([node("Softmax", ["h"], ["y"])], "over Softmax, Relu they lead to the graph's input 'x'"),
        ([node("Conv", ["h", "x"], ["y"])], "input 'x'"),
        (
            [
                node("MatMul", ["turned", "h"], ["y"]),
            ],
            "weights stand on the left",
        ),
        ([node("Gemm", ["h", "W"], ["y"], transA=1)], "transposes its input"),
        ([node("Gemm", ["h", "W", "h"], ["y"])], "computed is added"),
        ([node("Einsum", ["h", "W"], ["y"], equation="nd,dk->nk")], "Einsum"),
        (
            [
                node("MatMul", ["h", "W"], ["z"]),
                node("RandomNormalLike", ["z"], ["r"]),
                node("Add", ["z", "r"], ["y"]),
            ],
            "RandomNormalLike draws at random",
        ),
    ],
)
def test_other_endings(nodes, said):
    turned = constant("turned", np.ones((3, 7)))
    assert said in refused(ending(*nodes, initializers=[turned]))


def test_weights_that_are_fed_or_drawn_are_none():
    model = ending(node("MatMul", ["h", "fed"], ["y"]))
    model.graph.input.append(value("fed", (N_INPUTS, N_CLASSES)))
    assert "graph's input" in refused(model)
    drawn = node("RandomNormal", [], ["weights"], shape=[N_INPUTS, N_CLASSES])
    assert "RandomNormal" in refused(ending(drawn, node("MatMul", ["h", "weights"], ["y"])))


def test_a_wider_convolution():
    model = images(
        node("Conv", ["h", "K"], ["z"]),
        node("Flatten", ["z"], ["y"]),
        kernel=np.ones((5, 3, 2, 3)),
    )
    assert "whose kernel is 2x3" in refused(model)


def test_a_residual_connection_around_it():
    model = network()
    model.graph.node[-1].output[0] = "sum"
    model.graph.initializer.append(constant("back", np.ones((N_HIDDEN, N_CLASSES))))
    model.graph.node.append(node("MatMul", ["h0", "back"], ["skipped"]))
    model.graph.node.append(node("Add", ["sum", "skipped"], ["y"]))
    assert re.search("2 such layers, which read .*'h0'", refused(model))


def test_its_own_features_again():
    """Masks would change what is added as well."""
    nodes = [*dense(0, "x", "z0"), *dense(1, "z0", "z1"), node("Add", ["z0", "z1"], ["y"])]
    model = make_model(
        nodes,
        inputs=[value("x", ("N", N_INPUTS))],
        initializers=[
            *(constant(f"w{i}", WEIGHTS[i]) for i in (0, 1)),
            *(constant(f"b{i}", np.ones(N_HIDDEN)) for i in (0, 1)),
        ],
    )
    assert "2 such layers" in refused(model)


def test_a_branch_after_it():
    then = helper.make_graph([node("Neg", ["z"], ["a"])], "then", [], [value("a", None)])
    other = helper.make_graph([node("Abs", ["z"], ["b"])], "else", [], [value("b", None)])
    model = ending(
        node("MatMul", ["h", "W"], ["z"]),
        node("ReduceMax", ["z"], ["largest"], keepdims=0),
        node("Cast", ["largest"], ["flag"], to=TensorProto.BOOL),
        node("If", ["flag"], ["y"], then_branch=then, else_branch=other),
    )
    assert "If, a branch or loop" in refused(model)


def test_scores_that_are_constant():
    assert "do not depend on what is fed" in refused(ending(node("Identity", ["W"], ["y"])))

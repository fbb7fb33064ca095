"""Graphs without one last layer, and what they are told."""

import re
import warnings

import numpy as np
import pytest
from graph_last_layer import ending, images
from graph_models import constant, make_model, node, value
from graph_noise import N_CLASSES, N_HIDDEN, N_INPUTS, WEIGHTS, dense, load, network
from onnx import TensorProto, helper
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression

from service.errors import InvalidConfig
from service.graph.noise.last_layer import find_last_layer

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # its own imports are deprecated
    from skl2onnx import to_onnx

RNG = np.random.default_rng(9)


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
            "weights are on the left",
        ),
        ([node("Gemm", ["h", "W"], ["y"], transA=1)], "transposes its input"),
        ([node("Gemm", ["h", "W", "h"], ["y"])], "addend is computed"),
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

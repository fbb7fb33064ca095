"""Graphs without one last layer, and what they are told."""

import re

import numpy as np
import pytest
from classifier_files import skl2onnx_model
from graph_models import (
    N_CLASSES,
    N_HIDDEN,
    N_INPUTS,
    branched,
    constant,
    image_model,
    last_layer_model,
    load,
    network,
    node,
    value,
)
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression

from service.errors import InvalidConfig
from service.graph.noise.last_layer import find_last_layer

RNG = np.random.default_rng(9)


def refused(model, tensor="y"):
    with pytest.raises(InvalidConfig) as caught:
        find_last_layer(load(model).graph, tensor)
    (violation,) = caught.value.violations
    assert violation.location == "config.measures"
    assert violation.message.startswith("last_layer_dropout_variance: ")
    assert "a Gemm, MatMul or 1x1 Conv with constant weights" in violation.message
    return violation.message


@pytest.mark.parametrize(
    ("estimator", "named"),
    [
        (RandomForestClassifier(3, max_depth=2), "TreeEnsembleClassifier"),
        (LogisticRegression(), "LinearClassifier"),
    ],
)
def test_classifiers_of_one_node_have_none(estimator, named):
    rows, labels = RNG.normal(size=(40, 4)).astype(np.float32), RNG.integers(0, 3, size=40)
    model = skl2onnx_model(estimator, rows, labels, zipmap=False)
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
    assert said in refused(last_layer_model(*nodes, initializers=[turned]))


def test_weights_that_are_fed_or_drawn_are_none():
    model = last_layer_model(node("MatMul", ["h", "fed"], ["y"]))
    model.graph.input.append(value("fed", (N_INPUTS, N_CLASSES)))
    assert "graph's input" in refused(model)
    drawn = node("RandomNormal", [], ["weights"], shape=[N_INPUTS, N_CLASSES])
    assert "RandomNormal" in refused(
        last_layer_model(drawn, node("MatMul", ["h", "weights"], ["y"]))
    )


def test_a_wider_convolution():
    model = image_model(
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


def test_a_branch_after_it():
    after = branched([node("Neg", ["z"], ["a"])], "z", "y")
    model = last_layer_model(node("MatMul", ["h", "W"], ["z"]), *after)
    assert "If, a branch or loop" in refused(model)


def test_scores_that_are_constant():
    assert "do not depend on what is fed" in refused(
        last_layer_model(node("Identity", ["W"], ["y"]))
    )

"""Graphs without one last layer, and what they are told."""

import numpy as np
import pytest
from classifier_files import skl2onnx_model
from graph_models import (
    N_CLASSES,
    N_INPUTS,
    branched,
    constant,
    image_model,
    last_layer_model,
    load,
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


MULTIPLIED = node("MatMul", ["h", "W"], ["z"])


@pytest.mark.parametrize(
    ("nodes", "said"),
    [
        ([node("Softmax", ["h"], ["y"])], "over Softmax, Relu they lead to the graph's input 'x'"),
        ([node("Conv", ["h", "x"], ["y"])], "input 'x'"),
        ([node("MatMul", ["turned", "h"], ["y"])], "weights are on the left"),
        ([node("Gemm", ["h", "W"], ["y"], transA=1)], "transposes its input"),
        ([node("Gemm", ["h", "W", "h"], ["y"])], "addend is computed"),
        ([node("Einsum", ["h", "W"], ["y"], equation="nd,dk->nk")], "Einsum"),
        ([node("Identity", ["W"], ["y"])], "do not depend on what is fed"),
        ([node("MatMul", ["h", "fed"], ["y"])], "graph's input"),
        (
            [
                node("RandomNormal", [], ["weights"], shape=[N_INPUTS, N_CLASSES]),
                node("MatMul", ["h", "weights"], ["y"]),
            ],
            "RandomNormal",
        ),
        (
            [
                MULTIPLIED,
                node("RandomNormalLike", ["z"], ["r"]),
                node("Add", ["z", "r"], ["y"]),
            ],
            "RandomNormalLike draws at random",
        ),
        ([MULTIPLIED, *branched([node("Neg", ["z"], ["a"])], "z", "y")], "If, a branch or loop"),
        # A residual connection around the layer.
        (
            [
                MULTIPLIED,
                node("MatMul", ["x", "W"], ["skipped"]),
                node("Add", ["z", "skipped"], ["y"]),
            ],
            "2 such layers, which read 'x', 'h'",
        ),
    ],
)
def test_other_endings(nodes, said):
    turned = constant("turned", np.ones((3, 7)))
    model = last_layer_model(*nodes, initializers=[turned])
    model.graph.input.append(value("fed", (N_INPUTS, N_CLASSES)))
    assert said in refused(model)


def test_a_wider_convolution():
    model = image_model(
        node("Conv", ["h", "K"], ["z"]),
        node("Flatten", ["z"], ["y"]),
        kernel=np.ones((5, 3, 2, 3)),
    )
    assert "whose kernel is 2x3" in refused(model)

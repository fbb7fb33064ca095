"""Which output is chosen, by the graph alone."""

import numpy as np
import pytest
from graph_models import FLOAT, constant, make_model, node, resolve, serve, value
from onnx import TensorProto, helper

from service.errors import InvalidConfig, InvalidOnnxModel
from service.graph.output.plan import plan_output

LOGITS = (3 * np.random.default_rng(0).normal(size=(12, 6))).astype(np.float32)
CONFIDENT = (60 * np.random.default_rng(1).normal(size=(12, 6))).astype(np.float32)
WEIGHTS = np.random.default_rng(2).normal(size=(6, 6)).astype(np.float32)


def two_outputs(*nodes, shapes=(("N", 6), ("N", 6)), element_types=(FLOAT, FLOAT)):
    outputs = [
        value(name, shape, element_type)
        for name, shape, element_type in zip("yw", shapes, element_types, strict=True)
    ]
    return make_model([node("Identity", ["x"], ["z"]), *nodes], outputs=outputs)


def test_one_column_beside_the_scores_is_no_candidate():
    model = two_outputs(
        node("ReduceMax", ["z"], ["y"], axes=[1]),
        node("Identity", ["z"], ["w"]),
        shapes=(("N", 1), ("N", 6)),
    )
    assert resolve(model, {"x": LOGITS}).name == "w"


def test_logits_and_their_softmax_carry_the_same_scores():
    for order in ("yw", "wy"):
        model = two_outputs(
            node("Identity", ["z"], [order[0]]), node("Softmax", [order[0]], [order[1]])
        )
        served = serve(model, {"x": CONFIDENT})
        assert served.choice.name == "y"
        assert "same scores" in served.choice.inferred
        assert served.choice.kind == "logits"
        np.testing.assert_array_equal(served["scores"], CONFIDENT)


def test_two_outputs_with_different_scores_must_be_told_apart():
    model = two_outputs(
        node("Identity", ["z"], ["y"]),
        node("MatMul", ["z", "weights"], ["w"]),
        shapes=(("N", 6), ("N", None)),
    )
    model.graph.initializer.append(constant("weights", WEIGHTS))
    message = r"set output\.name to one of: 'y' float32 \(\?, 6\); 'w' float32 \(\?, \?\)"
    with pytest.raises(InvalidOnnxModel, match=message):
        resolve(model, {"x": LOGITS})
    served = serve(model, {"x": LOGITS}, name="w")
    np.testing.assert_allclose(served["scores"], LOGITS @ WEIGHTS, rtol=1e-4, atol=1e-4)
    assert "named by the caller" in served.choice.inferred


def test_the_callers_name_must_exist_and_suit():
    model = two_outputs(
        node("Identity", ["z"], ["y"]),
        node("ArgMax", ["z"], ["w"], axis=1),
        element_types=(FLOAT, TensorProto.INT64),
    )
    with pytest.raises(InvalidConfig, match="no output 'q'; it has 'y', 'w'") as caught:
        plan_output(model, name="q")
    assert caught.value.violations[0].location == "config.output.name"
    with pytest.raises(InvalidConfig, match=r"'w' int64 .* cannot hold class scores"):
        plan_output(model, name="w")


@pytest.mark.parametrize(
    ("shape", "element_type"),
    [
        (["N", 6], TensorProto.INT64),
        (["N", 6], TensorProto.STRING),
        (["N", 5, 10], FLOAT),
        (["N", 10, 8, 8], FLOAT),
        ([], FLOAT),
    ],
)
def test_no_output_that_can_hold_scores_is_an_error_that_lists_them(shape, element_type):
    model = make_model([node("Identity", ["x"], ["y"])], outputs=[value("y", shape, element_type)])
    with pytest.raises(InvalidOnnxModel, match=r"no output can hold class scores.*'y'"):
        plan_output(model)


@pytest.mark.parametrize(
    "nodes",
    [
        [node("Identity", ["y"], ["y"])],
        [node("Identity", ["a"], ["y"]), node("Identity", ["y"], ["a"])],
        [helper.make_node("ZipMap", [], ["y"], domain="ai.onnx.ml")],
        [node("Softmax", [], ["y"])],
        [node("Concat", ["p", "q"], ["y"], axis=1), node("Sigmoid", [], ["q"]),
         node("Sub", ["x", "q"], ["p"])],
        [helper.make_node("LinearClassifier", ["x"], ["y"], domain="ai.onnx.ml")],
    ],
)  # fmt: skip
def test_planning_survives_malformed_graphs(nodes):
    assert plan_output(make_model(nodes)).name == "y"


def test_a_very_long_chain_is_walked():
    steps = [node("Identity", [f"t{i}"], [f"t{i + 1}"]) for i in range(20_000)]
    model = make_model(
        [node("Softmax", ["x"], ["t0"]), *steps, node("Identity", ["t20000"], ["y"])]
    )
    assert plan_output(model).source is not None

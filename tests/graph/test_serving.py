import re

import numpy as np
import onnx
import pytest
from graph_models import (
    FLOAT,
    branched,
    constant,
    make_model,
    node,
    passthrough,
    reference,
    run_session,
    serve,
    value,
)
from onnx import TensorProto

from service.graph.description import OutputChoice
from service.graph.serving import build_packed_graph, build_serving_graph

LOGITS = (3 * np.random.default_rng(0).normal(size=(16, 10))).astype(np.float32)
CHOICE = OutputChoice("y", "logits", "y", "a test", n_classes=10)
COLUMNS = [
    "entropy",
    "neg_log_pmax",
    "margin",
    "energy",
    "neg_log_topk_mass_1",
    "neg_log_topk_mass_5",
]


def test_the_outputs_are_the_heads_and_nothing_else():
    model = build_serving_graph(passthrough(), CHOICE, top_k=(1, 5))
    assert [output.name for output in model.graph.output] == [
        "howsure_top_classes",
        "howsure_top_scores",
        *(f"howsure_{column}" for column in COLUMNS),
    ]
    types = [output.type.tensor_type.elem_type for output in model.graph.output]
    assert types == [TensorProto.INT64] + [FLOAT] * 7


@pytest.mark.parametrize(
    "columns", [COLUMNS, COLUMNS[::-1], ["margin", "neg_log_topk_mass_5", "entropy"], []]
)
@pytest.mark.parametrize("opset", [11, 13, 26])
def test_one_output_holds_what_several_hold_in_the_order_asked_for(opset, columns):
    def model():
        return passthrough(opset=opset, ir_version=13)

    several = run_session(build_serving_graph(model(), CHOICE, top_k=(1, 5)), {"x": LOGITS})
    one = build_packed_graph(model(), CHOICE, top_k=(1, 5), columns=columns)
    onnx.checker.check_model(one, full_check=True)
    (words,) = run_session(one, {"x": LOGITS}).values()
    parts = [several["howsure_top_classes"], several["howsure_top_scores"]]
    parts += [several[f"howsure_{column}"][:, None] for column in columns]
    assert words.dtype == np.float32
    np.testing.assert_array_equal(words, np.concatenate(parts, axis=1).astype(np.float32))


@pytest.mark.parametrize("top_k", [(0,), (1, 10), (11,), (-1,)])
def test_events_out_of_range_are_an_error(top_k):
    with pytest.raises(ValueError, match=re.escape("top_k must lie in [1, 10)")):
        build_serving_graph(passthrough(), CHOICE, top_k=top_k)


def test_dead_nodes_and_weights_are_dropped():
    model = make_model(
        [
            node("MatMul", ["x", "w"], ["y"]),
            node("Softmax", ["y"], ["p"]),
            node("MatMul", ["x", "unused"], ["u"]),
            node("ArgMax", ["p"], ["label"], axis=1),
        ],
        outputs=[value("y"), value("label", None, TensorProto.INT64)],
        initializers=[constant("w", np.eye(10)), constant("unused", np.eye(10))],
    )
    build_serving_graph(model, CHOICE, top_k=(1,))
    assert [tensor.name for tensor in model.graph.initializer] == ["w"]
    operators = [step.op_type for step in model.graph.node]
    assert operators.count("MatMul") == 1
    assert "Softmax" not in operators
    assert "ArgMax" not in operators


def test_what_a_branch_takes_from_outside_is_alive():
    nodes = branched([node("Mul", ["h", "two"], ["a"])], "h", "y")
    model = make_model([node("Relu", ["x"], ["h"]), *nodes], initializers=[constant("two", 2)])
    served = serve(model, {"x": LOGITS})
    expected = reference(2 * np.maximum(LOGITS, 0))[2]["entropy"]
    np.testing.assert_allclose(served["entropy"], expected, rtol=1e-4)


def test_an_optional_input_left_out_is_no_name():
    model = make_model([node("Clip", ["x", "", "high"], ["y"])], initializers=[constant("high", 2)])
    served = serve(model, {"x": LOGITS})
    expected = reference(np.minimum(LOGITS, 2))[2]["entropy"]
    np.testing.assert_allclose(served["entropy"], expected, rtol=1e-4)


def test_the_default_of_an_unused_input_is_kept():
    model = make_model(
        [node("Identity", ["x"], ["y"]), node("Add", ["x", "w"], ["u"])],
        inputs=[value("x"), value("w", [10])],
        initializers=[constant("w", np.zeros(10))],
        ir_version=3,
    )
    served = serve(model, {"x": LOGITS})
    assert [given.name for given in served.description.inputs] == ["x"]


def test_several_inputs_stay_the_interface_even_when_one_is_unused():
    model = make_model(
        [node("Identity", ["a"], ["y"]), node("Identity", ["b"], ["w"])],
        inputs=[value("a"), value("b")],
        outputs=[value("y"), value("w")],
    )
    feeds = {"a": LOGITS, "b": LOGITS}
    served = serve(model, feeds, name="y")
    assert [given.name for given in served.description.inputs] == ["a", "b"]
    np.testing.assert_allclose(served["entropy"], reference(LOGITS)[2]["entropy"], rtol=1e-4)

import re

import numpy as np
import onnx
import pytest
from graph_models import (
    FLOAT,
    constant,
    make_model,
    node,
    opsets,
    passthrough,
    reference,
    resolve,
    run_session,
    serve,
    value,
)
from onnx import TensorProto, helper

from service.graph.description import OutputChoice
from service.graph.load import load_onnx_model
from service.graph.output.plan import plan_output, probe_graph
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


@pytest.mark.parametrize("opset", opsets(11, 13, 18, 23, 26))
def test_the_file_passes_onnxs_full_check(opset):
    model = passthrough(opset=opset, ir_version=13)
    build_serving_graph(model, CHOICE, top_k=(1, 5), with_scores=True)
    onnx.checker.check_model(model, full_check=True)
    assert model.ir_version == 13


@pytest.mark.parametrize("precision", ["float32", "float64"])
def test_scores_come_along_when_asked(precision):
    choice = OutputChoice("y", "logits", "y", "a test", n_classes=10, precision=precision)
    model = build_serving_graph(passthrough(), choice, top_k=(1,), with_scores=True)
    scores = run_session(model, {"x": LOGITS})["howsure_scores"]
    assert scores.dtype == precision
    np.testing.assert_array_equal(scores, LOGITS)


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


@pytest.mark.parametrize("probed", [False, True])
def test_a_stored_choice_serves_as_the_first_one_did(probed):
    model = make_model(
        [node("MatMul", ["x", "w"], ["z"]), node("Softmax", ["z"], ["y"])],
        initializers=[constant("w", np.random.default_rng(1).normal(size=(10, 10)))],
    )
    data = model.SerializeToString()
    loaded = load_onnx_model(data)
    choice = resolve(data, {"x": LOGITS})
    if probed:
        probe_graph(loaded, plan_output(loaded))
    build_serving_graph(loaded, choice, top_k=(1, 5))
    got = run_session(loaded, {"x": LOGITS})
    first = serve(data, {"x": LOGITS})
    for column in COLUMNS:
        np.testing.assert_array_equal(got[f"howsure_{column}"], first[column])


@pytest.mark.parametrize("batch", [1, 8])
def test_a_fixed_batch_is_kept(batch):
    model = passthrough(shape=[batch, 10])
    rows = LOGITS[:batch]
    served = serve(model, {"x": rows}, trial={"x": rows})
    assert served.description.fixed_batch == batch
    np.testing.assert_allclose(served["entropy"], reference(rows)[2]["entropy"], rtol=1e-4)


def test_functions_of_the_model_survive():
    imports = [helper.make_opsetid("", 18)]
    body = [node("MatMul", ["a", "b"], ["m"]), node("Relu", ["m"], ["o"])]
    function = helper.make_function("own", "Dense", ["a", "b"], ["o"], body, imports)
    model = make_model(
        [
            node("Dense", ["x", "w"], ["h"], domain="own"),
            node("Dense", ["h", "w"], ["y"], domain="own"),
        ],
        initializers=[constant("w", np.random.default_rng(2).normal(size=(10, 10)))],
        functions=[function],
        opset=18,
        opset_imports=[helper.make_opsetid("own", 1)],
    )
    logits = run_session(model, {"x": LOGITS})["y"]
    served = serve(model, {"x": LOGITS})
    np.testing.assert_allclose(served["margin"], reference(logits)[2]["margin"], rtol=1e-4)


def branching():
    then = helper.make_graph([node("Mul", ["h", "two"], ["a"])], "then", [], [value("a")])
    other = helper.make_graph([node("Identity", ["h"], ["b"])], "else", [], [value("b")])
    return make_model(
        [
            node("Relu", ["x"], ["h"]),
            node("ReduceMax", ["x"], ["largest"], keepdims=0),
            node("Greater", ["largest", "zero"], ["flag"]),
            node("If", ["flag"], ["y"], then_branch=then, else_branch=other),
        ],
        initializers=[constant("two", 2), constant("zero", 0)],
    )


def test_what_a_branch_takes_from_outside_is_alive():
    served = serve(branching(), {"x": LOGITS})
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


@pytest.mark.parametrize("opset", [11, 15])
def test_a_graph_as_tf2onnx_writes_it(opset):
    """Keras: channels last transposed at the entrance, dense layers as MatMul and Add, softmax."""
    rng = np.random.default_rng(3)
    model = make_model(
        [
            node("Transpose", ["image:0"], ["nchw"], perm=[0, 3, 1, 2]),
            node("Conv", ["nchw", "kernel"], ["conv"], kernel_shape=[3, 3]),
            node("Relu", ["conv"], ["relu"], name="model/conv/Relu"),
            node("Transpose", ["relu"], ["nhwc"], perm=[0, 2, 3, 1]),
            node("Reshape", ["nhwc", "const_fold_opt__9"], ["flat"], name="model/flatten/Reshape"),
            node("MatMul", ["flat", "dense"], ["matmul"], name="model/dense/MatMul"),
            node("Add", ["matmul", "bias"], ["model/dense/BiasAdd:0"], name="model/dense/BiasAdd"),
            node("Softmax", ["model/dense/BiasAdd:0"], ["dense_out"], name="dense/Softmax"),
        ],
        inputs=[value("image:0", ["unk__12", 6, 6, 1])],
        outputs=[value("dense_out", ["unk__13", 10])],
        initializers=[
            constant("kernel", rng.normal(size=(4, 1, 3, 3))),
            constant("const_fold_opt__9", [-1, 64], np.int64),
            constant("dense", rng.normal(size=(64, 10))),
            constant("bias", rng.normal(size=10)),
        ],
        opset=opset,
    )  # fmt: skip
    images = rng.normal(size=(16, 6, 6, 1)).astype(np.float32)
    probabilities = run_session(model, {"image:0": images})["dense_out"]
    served = serve(model, {"image:0": images})
    assert served.choice.tensor == "model/dense/BiasAdd:0"
    np.testing.assert_allclose(served["top_scores"][:, 0], probabilities.max(axis=1), rtol=1e-5)
    np.testing.assert_array_equal(served["top_classes"][:, 0], probabilities.argmax(axis=1))
    expected = reference(served["scores"])[2]
    np.testing.assert_allclose(served["entropy"], expected["entropy"], rtol=1e-4, atol=1e-37)

"""The model's interface, and the graph that serves it."""

import numpy as np
import onnx
import pytest
from graph_models import (
    FLOAT,
    branched,
    constant,
    make_model,
    passthrough,
    reference,
    run_session,
    serve,
    steps,
    value,
)
from onnx import TensorProto, helper

from service.errors import InvalidOnnxModel
from service.graph.describe import describe_onnx_model
from service.graph.description import OutputChoice, TensorSpec
from service.graph.serving import build_packed_graph, build_serving_graph

LOGITS = (3 * np.random.default_rng(0).normal(size=(16, 10))).astype(np.float32)
CHOICE = OutputChoice("y", "logits", "y", "a test", n_classes=10)
MASSES = ["neg_log_topk_mass_1", "neg_log_topk_mass_5"]
COLUMNS = ["entropy", "neg_log_pmax", "margin", "energy", *MASSES]


MAP = helper.make_map_type_proto(TensorProto.INT64, helper.make_tensor_type_proto(FLOAT, ()))
MAPS = helper.make_value_info("maps", helper.make_sequence_type_proto(MAP))


def test_the_interface_is_read():
    """By numpy's names of types; only positive sizes are fixed, and weights are no inputs."""
    shape = ["N", None, 0, -1, 4]
    outputs = [value("y", shape, kind) for kind in (TensorProto.BFLOAT16, TensorProto.DOUBLE, 999)]
    ends = {"inputs": [value("images", shape), value("w", [3, 2])]}
    ends["outputs"] = [*outputs, value("label", None, TensorProto.INT64), MAPS]
    options = {"initializers": [constant("w", [[1, 2]] * 3)], "opset": 18, "ir_version": 9}
    model = make_model(steps("y = MatMul(images, w)"), **ends, **options)
    description = describe_onnx_model(model)
    free = (None, None, None, None, 4)
    assert description.inputs == (TensorSpec("images", "float32", free),)
    scores = [TensorSpec("y", dtype, free) for dtype in ("bfloat16", "float64", "unknown")]
    others = [TensorSpec("label", "int64", None), TensorSpec("maps", "sequence", None)]
    assert list(description.outputs) == [*scores, *others]
    assert (description.opset, description.ir_version) == (18, 9)
    assert description.class_labels is description.fixed_batch is None


def of_batches(*batches):
    inputs = [value(name, [batch, 4]) for name, batch in zip("ab", batches, strict=True)]
    return describe_onnx_model(make_model(steps("y = Add(a, b)"), inputs=inputs))


def test_a_batch_is_fixed_by_any_input():
    sizes = [(8, 8), (1, 1), ("N", "N"), (4, None)]
    assert [of_batches(*size).fixed_batch for size in sizes] == [8, 1, None, 4]
    with pytest.raises(InvalidOnnxModel, match="different"):
        of_batches(4, 1)


def test_an_input_with_a_default_is_none():
    weights = {"inputs": [value("w", [1])], "initializers": [constant("w", [1])]}
    with pytest.raises(InvalidOnnxModel, match="no input"):
        describe_onnx_model(make_model(steps("y = Identity(w)"), **weights))


def test_the_outputs_are_the_heads_and_nothing_else():
    outputs = build_serving_graph(passthrough(), CHOICE, top_k=(1, 5)).graph.output
    names = [f"howsure_{name}" for name in ("top_classes", "top_scores", *COLUMNS)]
    assert [output.name for output in outputs] == names
    types = [output.type.tensor_type.elem_type for output in outputs]
    assert types == [TensorProto.INT64] + [FLOAT] * 7


@pytest.mark.parametrize("columns", [COLUMNS[::-1], ["margin", MASSES[1], "entropy"], []])
@pytest.mark.parametrize("opset", [11, 13, 26])
def test_one_output_holds_what_several_hold_in_the_requested_order(opset, columns):
    options = {"opset": opset, "ir_version": 13}
    graph = build_serving_graph(passthrough(**options), CHOICE, top_k=(1, 5))
    several = run_session(graph, {"x": LOGITS})
    one = build_packed_graph(passthrough(**options), CHOICE, top_k=(1, 5), columns=columns)
    onnx.checker.check_model(one, full_check=True)
    (words,) = run_session(one, {"x": LOGITS}).values()
    parts = [several["howsure_top_classes"], several["howsure_top_scores"]]
    parts += [several[f"howsure_{column}"][:, None] for column in columns]
    expected = np.concatenate(parts, axis=1).astype(np.float32)
    np.testing.assert_array_equal(words, expected, strict=True)


def test_events_out_of_range_are_an_error():
    for top_k in ((0,), (1, 10)):
        with pytest.raises(ValueError, match="top_k"):
            build_serving_graph(passthrough(), CHOICE, top_k=top_k)


def test_dead_nodes_and_weights_are_dropped():
    nodes = steps("y = MatMul(x, w); p = Softmax(y); u = MatMul(x, unused); label = ArgMax(p)")
    outputs = [value("y"), value("label", None, TensorProto.INT64)]
    weights = [constant("w", np.eye(10)), constant("unused", np.eye(10))]
    model = make_model(nodes, outputs=outputs, initializers=weights)
    build_serving_graph(model, CHOICE, top_k=(1,))
    assert [tensor.name for tensor in model.graph.initializer] == ["w"]
    operators = [step.op_type for step in model.graph.node]
    assert operators.count("MatMul") == 1
    assert not {"Softmax", "ArgMax"} & {*operators}


TWO = [constant("two", 2)]
AB = {"inputs": [value("a"), value("b")], "outputs": [value("y"), value("w")]}
DEFAULT = {"inputs": [value("x"), value("w", [10])], "ir_version": 3}
DEFAULT["initializers"] = [constant("w", np.zeros(10))]


ALIVE = [
    # What a branch takes from outside is alive.
    (
        [*steps("h = Relu(x)"), *branched(steps("a = Mul(h, two)"), "h", "y")],
        {"initializers": TWO},
        2 * np.maximum(LOGITS, 0),
    ),
    # An optional input left out is no name.
    (steps("y = Clip(x, , two)"), {"initializers": TWO}, np.minimum(LOGITS, 2)),
    # The default of an unused input is kept.
    (steps("y = Identity(x); u = Add(x, w)"), DEFAULT, LOGITS),
    # Several inputs stay the interface even when one is unused.
    (steps("y = Identity(a); w = Identity(b)"), AB, LOGITS),
]


@pytest.mark.parametrize(("nodes", "options", "logits"), ALIVE)
def test_what_is_alive_is_kept(nodes, options, logits):
    inputs = ["a", "b"] if options is AB else ["x"]
    served = serve(make_model(nodes, **options), dict.fromkeys(inputs, LOGITS), name="y")
    assert [one.name for one in served.description.inputs] == inputs
    np.testing.assert_allclose(served["entropy"], reference(logits)[2]["entropy"], rtol=1e-4)

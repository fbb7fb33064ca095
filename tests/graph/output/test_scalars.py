"""Outputs with one number a sample: told from class scores, passed through, refused otherwise."""

import numpy as np
import onnx
import pytest
from classifier_files import skl2onnx_model
from graph_models import FLOAT, constant, make_model, node, opsets, reference, run_session, value
from onnx import TensorProto
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression

from service.errors import InvalidConfig, InvalidOnnxModel
from service.graph.describe import describe_onnx_model
from service.graph.load import load_onnx_model
from service.graph.output.choose import choose_output
from service.graph.output.plan import plan_output, probe_graph
from service.graph.serving import build_serving_graph

LOGITS = (3 * np.random.default_rng(0).normal(size=(16, 10))).astype(np.float32)
OWN = LOGITS[:, 3].astype(np.float64)
DTYPES = {
    TensorProto.FLOAT16: np.float16,
    FLOAT: np.float32,
    TensorProto.DOUBLE: np.float64,
    TensorProto.INT8: np.int8,
    TensorProto.INT32: np.int32,
    TensorProto.INT64: np.int64,
}


def two_outputs(*, shape=("N", 1), declared=..., element_type=FLOAT, input_type=FLOAT, **options):
    """Return a model of logits, and of column 3 of them in a shape and type of its own."""
    sizes = [1] * (len(shape) - 1)
    declared = shape if declared is ... else declared
    return make_model(
        [
            node("Identity", ["x"], ["logits"]),
            node("Gather", ["x", "three"], ["column"], axis=1),
            node("Cast", ["column"], ["cast"], to=element_type),
            node("Reshape", ["cast", "shape"], ["confidence"]),
        ],
        inputs=[value("x", ("N", 10), input_type)],
        outputs=[
            value("confidence", declared, element_type),
            value("logits", ("N", 10), input_type),
        ],
        initializers=[constant("three", [3], np.int64), constant("shape", [-1, *sizes], np.int64)],
        **options,
    )


def passed(model, feeds, *names, output=None):
    """Return the choice and the serving graph's answers; names of scalars stand for themselves."""
    data = model if isinstance(model, bytes) else model.SerializeToString()
    loaded = load_onnx_model(data)
    describe_onnx_model(loaded)
    plan = plan_output(loaded, name=output, scalars=names)
    trial = run_session(probe_graph(loaded, plan), feeds)
    choice = choose_output(plan, trial, n_samples=len(next(iter(feeds.values()))))
    columns = {f"output_{i}": name for i, name in enumerate(names)}
    answers = []
    for graph in (loaded, load_onnx_model(data)):  # after the probe, and from a stored choice
        build_serving_graph(graph, choice, top_k=(1,), scalars=columns, with_scores=True)
        onnx.checker.check_model(graph)
        answers.append(run_session(graph, feeds))
    for key, array in answers[0].items():
        np.testing.assert_array_equal(array, answers[1][key])
    return choice, answers[0], {n: answers[0][f"howsure_{c}"] for c, n in columns.items()}


@pytest.mark.parametrize("opset", opsets(11, 13, 17, 21, 26))
@pytest.mark.parametrize("shape", [("N",), ("N", 1), ("N", 1, 1)])
@pytest.mark.parametrize("element_type", list(DTYPES))
def test_it_is_passed_through_as_float32(opset, shape, element_type):
    model = two_outputs(shape=shape, element_type=element_type, opset=opset, ir_version=8)
    choice, head, found = passed(model, {"x": LOGITS}, "confidence")
    assert choice.name == "logits"
    np.testing.assert_array_equal(head["howsure_scores"], LOGITS)
    expected = OWN.astype(DTYPES[element_type]).astype(np.float32)
    assert (found["confidence"].dtype, found["confidence"].shape) == (np.float32, (16,))
    np.testing.assert_array_equal(found["confidence"], expected)


@pytest.mark.parametrize("declared", [None, ("N", None)])
def test_an_undeclared_width_is_no_candidate_once_it_is_named(declared):
    model = two_outputs(declared=declared)
    with pytest.raises(InvalidOnnxModel, match="several outputs"):
        plan_output(model)
    choice, _, found = passed(model, {"x": LOGITS}, "confidence")
    assert choice.name == "logits"
    np.testing.assert_array_equal(found["confidence"], LOGITS[:, 3])


def test_beside_a_binary_score_of_one_column():
    model = make_model(
        [
            node("Gather", ["x", "zero"], ["z"], axis=1),
            node("Sigmoid", ["z"], ["p"]),
            node("Abs", ["z"], ["far"]),
            node("Neg", ["far"], ["confidence"]),
        ],
        outputs=[value("confidence", ("N", 1)), value("p", ("N", 1))],
        initializers=[constant("zero", [0], np.int64)],
    )
    choice, _, found = passed(model, {"x": LOGITS}, "confidence")
    assert (choice.name, choice.n_classes) == ("p", 2)
    np.testing.assert_array_equal(found["confidence"], -np.abs(LOGITS[:, 0]))


def test_several_and_one_that_starts_with_the_reserved_prefix():
    model = two_outputs()
    model.graph.node.append(node("ReduceSum", ["x", "one"], ["howsure_entropy"], keepdims=0))
    model.graph.initializer.append(constant("one", [1], np.int64))
    model.graph.output.append(value("howsure_entropy", ("N",)))
    names = ("user.howsure_entropy", "confidence")
    _, head, found = passed(model, {"x": LOGITS}, *names)
    np.testing.assert_allclose(found[names[0]], LOGITS.sum(axis=1), rtol=1e-4, atol=1e-5)
    np.testing.assert_array_equal(found["confidence"], LOGITS[:, 3])
    expected = reference(LOGITS)[2]["entropy"]
    np.testing.assert_allclose(head["howsure_entropy"], expected, rtol=1e-4)


def test_what_is_not_finite_in_float32_shows_and_zero_has_no_sign():
    rows = LOGITS.astype(np.float64)
    special = [np.nan, np.inf, -np.inf, 1e39, -0.0, 1e-40, -1e-300]
    rows[: len(special), 3] = special
    model = two_outputs(element_type=TensorProto.DOUBLE, input_type=TensorProto.DOUBLE)
    found = passed(model, {"x": rows}, "confidence")[2]["confidence"]
    np.testing.assert_array_equal(found[:7], [np.nan, np.inf, -np.inf, np.inf, 0, 0, 0])
    assert not np.signbit(found[4:7]).any()
    np.testing.assert_array_equal(found[7:], rows[7:, 3].astype(np.float32))


def test_what_is_made_from_a_classifier_s_probabilities_stays_so():
    """The head reads the classifier's raw scores; the other outputs go on reading the softmax."""
    data, labels = make_classification(200, 6, n_informative=4, n_classes=3, random_state=0)
    rows, fitted = data.astype(np.float32), LogisticRegression()
    model = skl2onnx_model(fitted, rows, labels, zipmap=False)
    model.graph.node.append(node("ReduceMax", ["probabilities", "axes"], ["largest"]))
    model.graph.initializer.append(constant("axes", [1], np.int64))
    model.graph.output.append(value("largest", ("N", 1)))
    choice, head, found = passed(model, {"X": rows}, "largest")
    assert choice.raw
    expected = fitted.predict_proba(rows).max(axis=1)
    np.testing.assert_allclose(found["largest"], expected, rtol=1e-4)
    np.testing.assert_allclose(head["howsure_top_scores"][:, 0], expected, rtol=1e-4)
    np.testing.assert_allclose(
        head["howsure_scores"], fitted.decision_function(rows), rtol=1e-3, atol=1e-4
    )


@pytest.mark.parametrize(
    ("names", "output", "message"),
    [
        (["absent"], None, "no output 'absent'; it has 'confidence', 'logits', 'text', 'flag'"),
        (
            ["logits"],
            None,
            r"output 'logits' float32 \(\?, 10\) is no measure: one",
        ),
        (["text"], None, r"output 'text' str \(\?\) is no measure"),
        (["flag"], None, r"output 'flag' bool \(\?\) is no measure"),
        (["total"], None, r"output 'total' float32 \(\) is no measure"),
        (["confidence"], "confidence", r"'confidence' .* is the one read for class scores"),
    ],
)
def test_what_is_none_is_refused_by_what_is_declared(names, output, message):
    model = two_outputs()
    model.graph.output.extend(
        [
            value("text", ("N",), TensorProto.STRING),
            value("flag", ("N",), TensorProto.BOOL),
            value("total", ()),
        ]
    )
    with pytest.raises(InvalidConfig, match=message) as caught:
        plan_output(model, name=output, scalars=names)
    assert caught.value.violations[0].location == "config.measures"


@pytest.mark.parametrize(
    ("made", "shape"),
    [
        (node("Identity", ["x"], ["own"]), r"\(16, 10\)"),
        (node("ReduceMax", ["x"], ["own"], keepdims=0), r"\(\)"),
        (node("ReduceMax", ["x"], ["own"], axes=[0]), r"\(1, 10\)"),
    ],
)
def test_what_is_none_is_refused_by_its_values(made, shape):
    model = make_model(
        [node("Identity", ["x"], ["logits"]), made],
        outputs=[value("logits", ("N", 10)), value("own", None)],
    )
    with pytest.raises(InvalidConfig, match=f"'own' of shape {shape} for 16 samples is no"):
        passed(model, {"x": LOGITS}, "own")

"""Outputs with one number a sample: told from class scores, passed through, refused otherwise."""

import numpy as np
import onnx
import pytest
from classifier_files import skl2onnx_model
from graph_models import FLOAT, constant, make_model, opsets, reference, run_session, steps, value
from onnx import TensorProto, helper
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression

from service.errors import InvalidConfig, InvalidOnnxModel
from service.graph.describe import describe_onnx_model
from service.graph.load import load_onnx_model
from service.graph.output.choose import choose_output
from service.graph.output.plan import plan_output, probe_graph
from service.graph.serving import build_serving_graph

LOGITS = (3 * np.random.default_rng(0).normal(size=(16, 10))).astype(np.float32)


def two_outputs(*, shape=("N", 1), declared=..., element_type=FLOAT, input_type=FLOAT, **options):
    """Return a model of logits, and of column 3 of them in a shape and type of its own."""
    declared = shape if declared is ... else declared
    sizes = [-1, *[1] * (len(shape) - 1)]
    return make_model(
        steps(
            "logits = Identity(x); column = Gather<axis=1>(x, three);"
            f"cast = Cast<to={element_type}>(column); confidence = Reshape(cast, sizes)"
        ),
        inputs=[value("x", ("N", 10), input_type)],
        outputs=[
            value("confidence", declared, element_type),
            value("logits", ("N", 10), input_type),
        ],
        initializers=[constant("three", [3], np.int64), constant("sizes", sizes, np.int64)],
        **options,
    )


def passed(model, feeds, *names):
    """Return the choice and the serving graph's answers; names of scalars stand for themselves."""
    data = model.SerializeToString()
    loaded = load_onnx_model(data)
    describe_onnx_model(loaded)
    plan = plan_output(loaded, scalars=names)
    trial = run_session(probe_graph(loaded, plan), feeds)
    choice = choose_output(plan, trial, n_samples=len(next(iter(feeds.values()))))
    columns = {f"output_{i}": name for i, name in enumerate(names)}
    answers = []
    for graph in (loaded, load_onnx_model(data)):  # after the probe, and from a stored choice
        build_serving_graph(graph, choice, top_k=(1,), scalars=columns, with_scores=True)
        onnx.checker.check_model(graph)
        answers.append(run_session(graph, feeds))
    np.testing.assert_equal(answers[0], answers[1])
    return choice, answers[0], {n: answers[0][f"howsure_{c}"] for c, n in columns.items()}


@pytest.mark.parametrize("opset", opsets(11, 13, 17, 21, 26))
@pytest.mark.parametrize("shape", [("N",), ("N", 1), ("N", 1, 1)])
def test_it_is_passed_through_as_float32(opset, shape):
    for dtype in map(np.dtype, ("f2", "f4", "f8", "i1", "i4", "i8")):
        element_type = helper.np_dtype_to_tensor_dtype(dtype)
        model = two_outputs(shape=shape, element_type=element_type, opset=opset, ir_version=8)
        choice, head, scalars = passed(model, {"x": LOGITS}, "confidence")
        assert choice.name == "logits"
        np.testing.assert_array_equal(head["howsure_scores"], LOGITS)
        expected = LOGITS[:, 3].astype(dtype).astype(np.float32)
        np.testing.assert_array_equal(scalars["confidence"], expected, strict=True)


@pytest.mark.parametrize("declared", [None, ("N", None)])
def test_an_undeclared_width_is_no_candidate_once_it_is_named(declared):
    model = two_outputs(declared=declared)
    with pytest.raises(InvalidOnnxModel, match="several outputs"):
        plan_output(model)
    choice, _, scalars = passed(model, {"x": LOGITS}, "confidence")
    assert choice.name == "logits"
    np.testing.assert_array_equal(scalars["confidence"], LOGITS[:, 3])


def test_beside_a_binary_score_of_one_column():
    text = "z = Gather<axis=1>(x, zero); p = Sigmoid(z); far = Abs(z); confidence = Neg(far)"
    outputs = [value("confidence", ("N", 1)), value("p", ("N", 1))]
    model = make_model(steps(text), outputs=outputs, initializers=[constant("zero", [0], int)])
    choice, _, scalars = passed(model, {"x": LOGITS}, "confidence")
    assert (choice.name, choice.n_classes) == ("p", 2)
    np.testing.assert_array_equal(scalars["confidence"], -np.abs(LOGITS[:, 0]))


def test_several_and_one_that_starts_with_the_reserved_prefix():
    model = two_outputs()
    model.graph.node.extend(steps("howsure_entropy = ReduceSum<keepdims=0>(x, one)"))
    model.graph.initializer.append(constant("one", [1], np.int64))
    model.graph.output.append(value("howsure_entropy", ("N",)))
    _, head, scalars = passed(model, {"x": LOGITS}, "user.howsure_entropy", "confidence")
    total = scalars["user.howsure_entropy"]
    np.testing.assert_allclose(total, LOGITS.sum(axis=1), rtol=1e-4, atol=1e-5)
    np.testing.assert_array_equal(scalars["confidence"], LOGITS[:, 3])
    expected = reference(LOGITS)[2]["entropy"]
    np.testing.assert_allclose(head["howsure_entropy"], expected, rtol=1e-4)


def test_what_is_not_finite_in_float32_shows_and_zero_has_no_sign():
    rows = LOGITS.astype(np.float64)
    rows[:7, 3] = [np.nan, np.inf, -np.inf, 1e39, -0.0, 1e-40, -1e-300]
    model = two_outputs(element_type=TensorProto.DOUBLE, input_type=TensorProto.DOUBLE)
    values = passed(model, {"x": rows}, "confidence")[2]["confidence"]
    np.testing.assert_array_equal(values[:7], [np.nan, np.inf, -np.inf, np.inf, 0, 0, 0])
    assert not np.signbit(values[4:7]).any()
    np.testing.assert_array_equal(values[7:], rows[7:, 3].astype(np.float32))


def test_what_is_made_from_a_classifier_s_probabilities_stays_so():
    """The head reads the classifier's raw scores; the other outputs go on reading the softmax."""
    data, labels = make_classification(200, 6, n_informative=4, n_classes=3, random_state=0)
    rows, fitted = data.astype(np.float32), LogisticRegression()
    model = skl2onnx_model(fitted, rows, labels, zipmap=False)
    model.graph.node.extend(steps("largest = ReduceMax(probabilities, axes)"))
    model.graph.initializer.append(constant("axes", [1], np.int64))
    model.graph.output.append(value("largest", ("N", 1)))
    choice, head, scalars = passed(model, {"X": rows}, "largest")
    assert choice.raw
    expected = fitted.predict_proba(rows).max(axis=1)
    np.testing.assert_allclose(scalars["largest"], expected, rtol=1e-4)
    np.testing.assert_allclose(head["howsure_top_scores"][:, 0], expected, rtol=1e-4)
    logits = fitted.decision_function(rows)
    np.testing.assert_allclose(head["howsure_scores"], logits, rtol=1e-3, atol=1e-4)


NO_SCALARS = [
    ("absent", None, "'absent'; it has 'confidence', 'logits', 'text', 'flag'"),
    ("logits", None, r"'logits' float32 \(\?, 10\)"),
    ("text", None, r"'text' str \(\?\)"),
    ("flag", None, r"'flag' bool \(\?\)"),
    ("total", None, r"'total' float32 \(\)"),
    ("confidence", "confidence", "'confidence' .* class scores"),
]


@pytest.mark.parametrize(("scalar", "output", "message"), NO_SCALARS)
def test_what_is_none_is_refused_by_what_is_declared(scalar, output, message):
    model = two_outputs()
    others = {"text": (("N",), TensorProto.STRING), "flag": (("N",), TensorProto.BOOL)}
    others["total"] = ((), FLOAT)
    model.graph.output.extend([value(name, *kind) for name, kind in others.items()])
    with pytest.raises(InvalidConfig, match=message) as caught:
        plan_output(model, name=output, scalars=[scalar])
    assert caught.value.violations[0].location == "config.measures"


OTHER_SHAPES = [
    ("Identity(x)", r"\(16, 10\)"),
    ("ReduceMax<keepdims=0>(x)", r"\(\)"),
    ("ReduceMax<axes=[0]>(x)", r"\(1, 10\)"),
]


@pytest.mark.parametrize(("made", "shape"), OTHER_SHAPES)
def test_what_is_none_is_refused_by_its_values(made, shape):
    outputs = [value("logits", ("N", 10)), value("own", None)]
    model = make_model(steps(f"logits = Identity(x); own = {made}"), outputs=outputs)
    with pytest.raises(InvalidConfig, match=f"'own' of shape {shape} for 16 samples"):
        passed(model, {"x": LOGITS}, "own")

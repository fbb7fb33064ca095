"""Outputs with one number a sample: told from class scores, passed through, refused otherwise."""

import numpy as np
import pytest
from classifier_files import skl2onnx_model
from graph_models import (
    FLOAT,
    constant,
    load,
    make_model,
    opsets,
    reference,
    run_session,
    serve,
    steps,
    value,
)
from onnx import TensorProto, helper
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression

from service.errors import InvalidConfig, InvalidOnnxModel
from service.graph.output.plan import plan_output, probe_graph
from service.graph.serving import build_serving_graph

LOGITS = (3 * np.random.default_rng(0).normal(size=(16, 10))).astype(np.float32)


def two_outputs(*, shape=("N", 1), element_type=FLOAT, input_type=FLOAT, **options):
    """Return a model of logits, and of column 3 of them in a shape and type of its own."""
    sizes = [-1, *[1] * (len(shape or "N") - 1)]
    return make_model(
        steps(
            "logits = Identity(x); column = Gather<axis=1>(x, three);"
            f"cast = Cast<to={element_type}>(column); confidence = Reshape(cast, sizes)"
        ),
        inputs=[value("x", ("N", 10), input_type)],
        outputs=[value("confidence", shape, element_type), value("logits", ("N", 10), input_type)],
        initializers=[constant("three", [3], np.int64), constant("sizes", sizes, np.int64)],
        **options,
    )


@pytest.mark.parametrize("opset", opsets(11, 13, 17, 21, 26))
@pytest.mark.parametrize("shape", [("N",), ("N", 1), ("N", 1, 1)])
def test_it_is_passed_through_as_float32(opset, shape):
    for dtype in map(np.dtype, ("f2", "f4", "f8", "i1", "i4", "i8")):
        element_type = helper.np_dtype_to_tensor_dtype(dtype)
        model = two_outputs(shape=shape, element_type=element_type, opset=opset, ir_version=8)
        served = serve(model, {"x": LOGITS}, scalars=["confidence"])
        assert served.choice.name == "logits"
        np.testing.assert_array_equal(served["scores"], LOGITS)
        expected = LOGITS[:, 3].astype(dtype).astype(np.float32)
        np.testing.assert_array_equal(served["output_0"], expected, strict=True)


def test_an_undeclared_width_is_no_candidate_once_it_is_named():
    model = two_outputs(shape=None)
    with pytest.raises(InvalidOnnxModel, match="several outputs"):
        plan_output(model)
    served = serve(model, {"x": LOGITS}, scalars=["confidence"])
    assert served.choice.name == "logits"
    np.testing.assert_array_equal(served["output_0"], LOGITS[:, 3])


def test_several_and_one_that_starts_with_the_reserved_prefix():
    model = two_outputs()
    model.graph.node.extend(steps("howsure_entropy = ReduceSum<keepdims=0>(x, one)"))
    model.graph.initializer.append(constant("one", [1], np.int64))
    model.graph.output.append(value("howsure_entropy", ("N",)))
    served = serve(model, {"x": LOGITS}, scalars=["user.howsure_entropy", "confidence"])
    np.testing.assert_allclose(served["output_0"], LOGITS.sum(axis=1), rtol=1e-4, atol=1e-5)
    np.testing.assert_array_equal(served["output_1"], LOGITS[:, 3])
    np.testing.assert_allclose(served["entropy"], reference(LOGITS)[2]["entropy"], rtol=1e-4)


def test_what_is_not_finite_in_float32_shows_and_zero_has_no_sign():
    rows = LOGITS.astype(np.float64)
    rows[:7, 3] = [np.nan, np.inf, -np.inf, 1e39, -0.0, 1e-40, -1e-300]
    model = two_outputs(element_type=TensorProto.DOUBLE, input_type=TensorProto.DOUBLE)
    values = serve(model, {"x": rows}, scalars=["confidence"])["output_0"]
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
    served = serve(model, {"X": rows}, scalars=["largest"])
    assert served.choice.raw
    probed = load(model)  # the graph of the probe serves as well
    probe_graph(probed, plan_output(probed, scalars=["largest"]))
    graph = build_serving_graph(probed, served.choice, top_k=(1,), with_scores=True)
    answers = run_session(graph, {"X": rows})
    np.testing.assert_array_equal(answers["howsure_scores"], served["scores"])
    expected = fitted.predict_proba(rows).max(axis=1)
    np.testing.assert_allclose(served["output_0"], expected, rtol=1e-4)
    logits = fitted.decision_function(rows)
    np.testing.assert_allclose(served["scores"], logits, rtol=1e-3, atol=1e-4)


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
    *(("Identity(x)", r"\(16, 10\)"), ("ReduceMax<keepdims=0>(x)", r"\(\)")),
    ("ReduceMax<axes=[0]>(x)", r"\(1, 10\)"),
]


@pytest.mark.parametrize(("made", "shape"), OTHER_SHAPES)
def test_what_is_none_is_refused_by_its_values(made, shape):
    outputs = [value("logits", ("N", 10)), value("own", None)]
    model = make_model(steps(f"logits = Identity(x); own = {made}"), outputs=outputs)
    with pytest.raises(InvalidConfig, match=f"'own' of shape {shape} for 16 samples"):
        serve(model, {"x": LOGITS}, scalars=["own"])

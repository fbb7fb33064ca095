"""Which output is chosen, and what it is taken for."""

import numpy as np
import pytest
from graph_models import (
    CONFIDENT,
    FLOAT,
    LOGITS,
    assert_reads_logits,
    constant,
    ending,
    make_model,
    node,
    passthrough,
    reference,
    resolve,
    serve,
    steps,
    value,
)
from onnx import TensorProto, helper
from scipy.special import expit, log_softmax, softmax

from service.errors import InvalidConfig, InvalidOnnxModel
from service.graph.output.plan import plan_output


def two_outputs(text, *, w=("N", 6), type_of_w=FLOAT, **options):
    nodes = steps(f"z = Identity(x); {text}")
    return make_model(nodes, outputs=[value("y", ("N", 6)), value("w", w, type_of_w)], **options)


def test_one_column_beside_the_scores_is_no_candidate():
    model = two_outputs("w = ReduceMax<axes=[1]>(z); y = Identity(z)", w=("N", 1))
    assert resolve(model, {"x": LOGITS}).name == "y"


@pytest.mark.parametrize(("raw", "normalised"), ["yw", "wy"])
def test_logits_and_their_softmax_carry_the_same_scores(raw, normalised):
    model = two_outputs(f"{raw} = Identity(z); {normalised} = Softmax({raw})")
    served = serve(model, {"x": CONFIDENT})
    assert (served.choice.name, served.choice.kind) == ("y", "logits")
    np.testing.assert_array_equal(served["scores"], CONFIDENT)


def test_two_outputs_with_different_scores_must_be_told_apart():
    model = two_outputs("y = Identity(z); w = Neg(z)", w=("N", None))
    message = r"output\.name .*: 'y' float32 \(\?, 6\); 'w' float32 \(\?, \?\)"
    with pytest.raises(InvalidOnnxModel, match=message):
        resolve(model, {"x": LOGITS})
    np.testing.assert_array_equal(serve(model, {"x": LOGITS}, name="w")["scores"], -LOGITS)


@pytest.mark.parametrize(
    ("name", "message"), [("q", "'q'; it has 'y', 'w'"), ("w", r"'w' int64 \(\?, 6\)")]
)
def test_the_callers_name_must_exist_and_suit(name, message):
    model = two_outputs("y = Identity(z); w = ArgMax<axis=1>(z)", type_of_w=TensorProto.INT64)
    with pytest.raises(InvalidConfig, match=message) as caught:
        plan_output(model, name=name)
    assert caught.value.violations[0].location == "config.output.name"


NO_SCORES = [
    *((["N", 6], TensorProto.INT64), (["N", 6], TensorProto.STRING), ([], FLOAT)),
    *((["N", 5, 10], FLOAT), (["N", 10, 8, 8], FLOAT)),
]


@pytest.mark.parametrize(("shape", "element_type"), NO_SCORES)
def test_no_output_that_can_hold_scores_is_an_error_that_lists_them(shape, element_type):
    model = make_model(steps("y = Identity(x)"), outputs=[value("y", shape, element_type)])
    with pytest.raises(InvalidOnnxModel, match=r"no output .*'y'"):
        plan_output(model)


MALFORMED = [
    *("y = Identity(y)", "y = Identity(a); a = Identity(y)", "y = ai.onnx.ml.ZipMap()"),
    *("y = Softmax()", "y = ai.onnx.ml.LinearClassifier(x)"),
    "y = Concat<axis=1>(p, q); q = Sigmoid(); p = Sub(x, q)",
]


@pytest.mark.parametrize("text", MALFORMED)
def test_planning_survives_malformed_graphs(text):
    assert plan_output(make_model(steps(text))).name == "y"


def test_a_very_long_chain_is_walked():
    chain = [helper.make_node("Identity", [f"t{i}"], [f"t{i + 1}"]) for i in range(20_000)]
    nodes = [node("Softmax", ["x"], ["t0"]), *chain, node("Identity", ["t20000"], ["y"])]
    assert plan_output(make_model(nodes)).source is not None


SHARES, LOGS = softmax(LOGITS, axis=1), log_softmax(LOGITS, axis=1)
BY_VALUE = [
    (LOGITS, "logits", ""),
    (SHARES, "probabilities", ""),
    (SHARES.astype(np.float16), "probabilities", ""),
    (np.eye(4), "probabilities", ""),
    (np.full((3, 4), 0.25), "probabilities", ""),
    (LOGS, "logits", "log-probabilities"),
    (np.zeros((3, 4)), "logits", ""),
    # A class may be ruled out, and rows may not be finite.
    (np.insert(LOGITS, 2, -np.inf, axis=1), "logits", ""),
    (np.insert(LOGS, 2, -np.inf, axis=1), "logits", "log-probabilities"),
    (np.vstack([LOGITS, np.full((2, 6), np.nan), np.full((2, 6), np.inf)]), "logits", ""),
    # One column is a probability within the unit interval.
    (np.array([[0.0], [0.4], [1.0]]), "probabilities", ""),
    (np.array([[0.2], [1.4]]), "logits", ""),
    (np.array([[-0.1], [0.5]]), "logits", ""),
]


@pytest.mark.parametrize(("values", "kind", "inferred"), BY_VALUE)
def test_kinds_are_told_by_value(values, kind, inferred):
    choice = resolve(passthrough(shape=["N", values.shape[1]]), {"x": np.float32(values)})
    assert (choice.tensor, choice.kind) == ("y", kind)
    assert choice.n_classes == max(2, values.shape[1])
    assert ("log-probabilities" in choice.inferred) == (inferred == "log-probabilities")


NO_KIND = [
    *((expit(LOGITS[:, :columns]), r"sigmoid.*output\.kind") for columns in (2, 6)),
    *((np.full((3, 4), filler), "not finite") for filler in (np.nan, np.inf, -np.inf)),
]


@pytest.mark.parametrize(("values", "named"), NO_KIND)
def test_independent_sigmoids_and_nothing_finite_are_refused(values, named):
    with pytest.raises(InvalidOnnxModel, match=named) as caught:
        resolve(passthrough(), {"x": np.float32(values)})
    assert caught.value.violations[0].location == "model"


def test_the_callers_logits_are_the_outputs_own_values_and_log_probabilities_serve_as_such():
    served = serve(ending(*steps("y = Softmax(z)")), {"x": LOGITS}, kind="logits")
    assert_reads_logits(served, SHARES, "y")
    assert_reads_logits(serve(passthrough(), {"x": LOGS}), LOGITS, "y")


@pytest.mark.parametrize("model", [passthrough(), ending(*steps("y = LogSoftmax(z)"))])
def test_the_callers_probabilities_are_cross_checked(model):
    with pytest.raises(InvalidConfig, match="probabilities") as caught:
        resolve(model, {"x": LOGITS}, kind="probabilities")
    assert caught.value.violations[0].location == "config.output.kind"


def test_scores_that_the_caller_calls_probabilities_are_normalised_and_it_is_said():
    shares = np.abs(LOGITS) / 30
    served = serve(passthrough(), {"x": shares}, kind="probabilities")
    assert "normalised" in served.choice.inferred
    expected = reference(np.log(shares, dtype=np.float64))[2]["entropy"]
    np.testing.assert_allclose(served["entropy"], expected, rtol=1e-4)


RESHAPED = [
    *("y = Reshape(x, blocks)", "y = Reshape(x, flat)", "y = ReduceSum<keepdims=0>(x)"),
    *("y = Transpose(x)", "y = Slice(x, zero, zero)"),
]


@pytest.mark.parametrize("text", RESHAPED)
def test_a_shape_that_only_shows_when_run_is_refused(text):
    numbers = {"blocks": [-1, 3, 2], "flat": [-1], "zero": [0]}
    constants = [constant(name, values, np.int64) for name, values in numbers.items()]
    model = make_model(steps(text), outputs=[value("y", None)], initializers=constants)
    with pytest.raises(InvalidOnnxModel, match=r"12 samples; \(samples, classes\)"):
        resolve(model, {"x": LOGITS})


# Binary models with one score: a second column is made.
Z = np.float32([-70, -3, 0.5, 2, 90])
P = np.float32([0, 1e-6, 0.25, 0.5, 0.75, 1])


@pytest.mark.parametrize("shape", [("N",), ("N", 1), ("N", 1, 1, 1)])
def test_a_binary_sigmoid_is_read_at_its_input(shape):
    ends = {"inputs": [value("x", shape)], "outputs": [value("y", shape)]}
    model = make_model(steps("z = Identity(x); y = Sigmoid(z)"), **ends)
    served = serve(model, {"x": Z.reshape(-1, *shape[1:])})
    assert (served.choice.n_classes, served.choice.positive_column) == (2, 0)
    np.testing.assert_array_equal(served["top_classes"][:, 0], [0, 0, 1, 1, 1])
    np.testing.assert_array_equal(served["scores"], np.stack([0 * Z, Z], axis=1))
    expected = reference(np.stack([0 * Z, Z], axis=1))[2]
    np.testing.assert_allclose(served["neg_log_pmax"], expected["neg_log_pmax"], rtol=1e-4)


def test_a_pair_made_of_one_sigmoid_is_read_at_its_input():
    text = "z = Identity(x); s = Sigmoid(z); c = Sub(one, s); y = Concat<axis=1>(c, s)"
    model = make_model(steps(text), initializers=[constant("one", [1])])
    served = serve(model, {"x": Z[:, None]})
    assert (served.choice.tensor, served.choice.positive_column) == ("z", 0)
    assert (served["neg_log_pmax"] > 0).all()


def test_one_column_of_probabilities_is_that_of_class_1():
    served = serve(passthrough(shape=["N", 1]), {"x": P[:, None]})
    assert served.choice.kind == "probabilities"
    np.testing.assert_array_equal(served["scores"], np.stack([1 - P, P], axis=1))
    np.testing.assert_array_equal(served["top_classes"][:, 0], [0, 0, 0, 0, 1, 1])
    surprise = -np.log1p(-np.minimum(P, 1 - P).astype(np.float64))
    np.testing.assert_allclose(served["neg_log_pmax"], surprise, rtol=1e-4)


@pytest.mark.parametrize(("column", "kind"), [([-4, -0.5, 0, 3], None), ([0.1, 0.6], "logits")])
def test_one_column_of_other_values_or_by_the_callers_word_is_the_logit_of_class_1(column, kind):
    column = np.float32(column)
    served = serve(passthrough(shape=["N"]), {"x": column}, kind=kind)
    assert served.choice.kind == "logits"
    np.testing.assert_array_equal(served["scores"], np.stack([0 * column, column], axis=1))
    certainty = expit(np.abs(column.astype(np.float64)))
    np.testing.assert_allclose(served["top_scores"][:, 0], certainty, rtol=1e-6)


def test_a_softmax_over_one_column_is_refused():
    model = ending(*steps("y = Softmax(z)"), shape=("N", 1))
    with pytest.raises(InvalidOnnxModel, match="always 1"):
        resolve(model, {"x": LOGITS[:, :1]})

"""Graphs that are not to be run, that harm a runtime, or that are no classifier's."""

import httpx
import numpy as np
import pytest
from graph_models import constant, make_model, node, steps, value
from hostile_case import HostileCase
from hostile_models import CREATED, N_CLASSES, N_SAMPLES, good, model_case
from onnx import SparseTensorProto, helper
from runner_models import (
    N_FEATURES,
    classifier,
    function_bomb,
    linear,
    undefined_below_zero,
    weights,
)

SCORES = value("y", ("N", N_CLASSES))


def then(operator, **attributes):
    return node(operator, ["z"], ["y"], **attributes)


def sparse_beyond_its_shape():
    sparse = SparseTensorProto(dims=[10])
    sparse.values.CopyFrom(constant("bias", [1.0]))
    sparse.indices.CopyFrom(constant("at", [10**9], np.int64))
    model = classifier(node("Add", ["z", "bias"], ["y"]))
    model.graph.sparse_initializer.append(sparse)
    return model


def integers_by_zero():
    text = "i = Cast<to = 6>(z); nil = Sub(i, i); q = Div(i, nil); y = Cast<to = 1>(q)"
    return classifier(*steps(text))


def convolution_without_a_stride():
    text = "i = Unsqueeze(z, axes); c = Conv<strides = [0, 0]>(i, kernel); y = Squeeze(c, one)"
    kernel = np.ones((1, 1, 1, 1))
    return classifier(*steps(text), constants={"axes": [1, 3], "one": [1], "kernel": kernel})


def ml(operator, outputs=("y",), **attributes):
    return make_model(
        [node(operator, ["x"], [*outputs], domain="ai.onnx.ml", **attributes)],
        inputs=[value("x", ("N", N_FEATURES))],
        outputs=[value("y", ("N", None))],
    )


def forest_beyond_its_nodes():
    nodes = {
        "treeids": [0, 0, 0],
        "nodeids": [0, 1, 2],
        "featureids": [0, 0, 0],
        "modes": ["BRANCH_LEQ", "LEAF", "LEAF"],
        "values": [0.0, 0.0, 0.0],
        "truenodeids": [10**6, 0, 0],
        "falsenodeids": [2, 0, 0],
    }
    leaves = {"treeids": [0, 0], "nodeids": [1, 2], "ids": [0, 1], "weights": [1.0, 1.0]}
    return ml(
        "TreeEnsembleClassifier",
        ["label", "y"],
        classlabels_int64s=[0, 1],
        **{f"nodes_{name}": values for name, values in nodes.items()},
        **{f"class_{name}": values for name, values in leaves.items()},
    )


def feature_before_the_first():
    model = ml("ArrayFeatureExtractor")
    model.graph.node[0].input.append("index")
    model.graph.initializer.append(constant("index", [-(10**9)], np.int64))
    return model


def linear_classifier_cut_short():
    weights = {"coefficients": [1.0], "classlabels_ints": [0, 1, 2]}
    return ml("LinearClassifier", ["l", "y"], **weights)


def without(field):
    model = good()
    del getattr(model.graph, field)[:]
    return model


def no_inputs():
    return make_model([node("Identity", ["w"], ["y"])], inputs=[], outputs=[SCORES])


def two_outputs():
    outputs = [SCORES, value("v", ("N", N_CLASSES))]
    return classifier(then("Neg"), node("Abs", ["z"], ["v"]), outputs=outputs)


def beside_x(name, shape=("N", N_FEATURES)):
    """Return a classifier with an input beside ``x``, which it does not use."""
    inputs = [value("x", ("N", N_FEATURES)), value(name, shape)]
    return lambda: classifier(then("Neg"), inputs=inputs)


def of_a_sequence():
    model = classifier(then("Neg"))
    kind = helper.make_sequence_type_proto(helper.make_tensor_type_proto(1, None))
    model.graph.input.append(helper.make_value_info("s", kind))
    return model


def wide(n_classes):
    """Return a model of so many classes, which are repeated and cost no bytes of the file."""
    text = (
        "many = Expand(half, sizes); m = ReduceMean<axes = [1], keepdims = 1>(z); y = Add(m, many)"
    )
    constants = {"half": [[0.5]], "sizes": [1, n_classes]}
    return classifier(*steps(text), outputs=[value("y", ("N", None))], constants=constants)


def infinite_weight():
    matrix = weights()
    matrix[:, 3] = np.inf
    return linear(matrix)


def mixing_rows():
    text = "s = Mul(z, z); m = ReduceSum<keepdims = 1>(s, first); y = Add(z, m)"
    return classifier(*steps(text), constants={"first": [0]})


def scaled_by_an_outlier():
    """Rows alone and together are answered alike; one of large numbers changes all others."""
    text = "s = Abs(z); m = ReduceMax<keepdims = 0>(s); c = Max(m, most); y = Div(z, c)"
    return classifier(*steps(text), constants={"most": 100.0})


def random():
    return classifier(node("RandomNormalLike", ["z"], ["r"]), node("Add", ["z", "r"], ["y"]))


def one_number():
    return classifier(node("ReduceMax", ["z"], ["y"], keepdims=0), outputs=[value("y", ())])


# One row alone is below zero, where the model has no answer.
ONE_BELOW = np.random.default_rng(3).uniform(1, 2, (N_SAMPLES, N_FEATURES)).astype(np.float32)
ONE_BELOW[41, 0] = -1
NEGATED = then("Neg")
CYCLE = [node("Add", ["z", "q"], ["y"]), node("Neg", ["y"], ["q"])]
# It loads, and takes no rows: it cannot be told whether the rows are to blame.
ROWS = {"code": "invalid-dataset", "says": "calibration"}
LATER = {"status": CREATED, "code": "invalid-dataset"}
TOO_LARGE = {"status": httpx.codes.REQUEST_ENTITY_TOO_LARGE, "code": "too-large"}
CASES = [
    model_case("function_bomb", lambda: function_bomb(30), "too-many-nodes", says="50000"),
    model_case("names_twice", lambda: classifier(NEGATED, NEGATED), "name-twice"),
    model_case("cycle", lambda: classifier(*CYCLE), "not-loaded"),
    model_case("sparse_beyond_its_shape", sparse_beyond_its_shape, "not-loaded"),
    model_case("convolution_without_a_stride", convolution_without_a_stride, "not-loaded"),
    model_case("forest_beyond_its_nodes", forest_beyond_its_nodes, "not-loaded"),
    model_case("linear_classifier_cut_short", linear_classifier_cut_short, "not-loaded"),
    model_case("integers_by_zero", integers_by_zero, "run-failed", **ROWS),
    model_case("feature_before_the_first", feature_before_the_first, "run-failed", **ROWS),
    model_case("no_inputs", lambda: without("input"), "no-input"),
    model_case("no_outputs", lambda: without("output"), "no-output"),
    model_case("two_outputs_of_scores", two_outputs, "several-scores"),
    model_case("input_of_a_reserved_name", beside_x("howsure_scores"), "reserved-name"),
    model_case("input_of_no_rows", beside_x("s", ()), "input-shape", says="'s'"),
    model_case("input_of_a_long_name", beside_x("s" * 3_000_000), "names-too-long"),
    model_case("input_that_is_a_sequence", of_a_sequence, "input-type"),
    model_case("output_that_is_one_number", one_number, "no-scores"),
    model_case("no_classes", lambda: linear(np.zeros((N_FEATURES, 0))), "output-shape"),
    model_case(
        "ten_million_classes", lambda: wide(10**7), "too-many-classes", says="10000", **TOO_LARGE
    ),
    model_case("weight_that_is_infinite", infinite_weight, "not-finite", **LATER),
    # The first rows settle what the model is; one that has no answer is found by the job.
    model_case(
        "one_row_without_an_answer",
        lambda: undefined_below_zero(weights()),
        "not-finite",
        says="row 41",
        inputs={"x": ONE_BELOW},
        **LATER,
    ),
    model_case(
        "one_row_for_all",
        lambda: classifier(node("ReduceMax", ["z"], ["y"], axes=[0], keepdims=1)),
        "output-rows",
    ),
    model_case("rows_that_change_one_another", mixing_rows, "rows-mixed"),
    model_case("outlier_that_changes_other_rows", scaled_by_an_outlier, "rows-mixed"),
    model_case("sigmoids", lambda: classifier(then("Sigmoid")), "not-a-distribution"),
    model_case("scores_drawn_at_random", random, "random"),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_broken_rule_is_named(hostile, case: HostileCase) -> None:
    hostile(case)

"""Inputs and outputs that are no classifier's, and answers that are none."""

import httpx
import numpy as np
import pytest
from graph_models import constant, make_model, node, value
from hostile_models import CREATED, N_CLASSES, N_SAMPLES, ModelCase, assert_told, good
from onnx import TensorProto, helper
from runner_models import N_FEATURES, classifier, linear, undefined_below_zero, weights

BOOL, INT64, STRING = TensorProto.BOOL, TensorProto.INT64, TensorProto.STRING
SCORES = value("y", ("N", N_CLASSES))


def made(*nodes, shape=("N", N_CLASSES), element_type=TensorProto.FLOAT, **others):
    return lambda: classifier(*nodes, outputs=[value("y", shape, element_type)], **others)


def then(operator, **attributes):
    return node(operator, ["z"], ["y"], **attributes)


def no_inputs():
    model = make_model([node("Identity", ["w"], ["y"])], inputs=[], outputs=[SCORES])
    model.graph.initializer.append(constant("w", weights()))
    return model


def no_outputs():
    model = good()
    del model.graph.output[:]
    return model


def two_outputs():
    outputs = [SCORES, value("v", ("N", N_CLASSES))]
    return classifier(then("Neg"), node("Abs", ["z"], ["v"]), outputs=outputs)


def given(name, shape=("N", N_FEATURES), *, n_rows="N"):
    """Return a classifier with an input beside ``x``, which it does not use."""
    inputs = [value("x", (n_rows, N_FEATURES)), value(name, shape)]
    return lambda: classifier(then("Neg"), inputs=inputs)


def given_sequence():
    model = classifier(then("Neg"))
    kind = helper.make_sequence_type_proto(helper.make_tensor_type_proto(1, None))
    model.graph.input.append(helper.make_value_info("s", kind))
    return model


def weighing(number):
    matrix = weights()
    matrix[:, 3] = number
    return linear(matrix)


def no_number_in_row(row):
    """Return samples of which one alone is below zero, where the model has no answer."""
    array = np.random.default_rng(3).uniform(1, 2, (N_SAMPLES, N_FEATURES)).astype(np.float32)
    array[row, 0] = -1
    return {"x": array}


def wide(n_classes):
    """Return a model of so many classes, which are repeated and cost no bytes of the file."""
    return classifier(
        node("Expand", ["one_more", "sizes"], ["many"]),
        node("ReduceMean", ["z"], ["mean"], axes=[1], keepdims=1),
        node("Add", ["mean", "many"], ["y"]),
        outputs=[value("y", ("N", None))],
        constants={"one_more": [[0.5]], "sizes": [1, n_classes]},
    )


LABELS_ONLY = node("ArgMax", ["z"], ["y"], axis=1, keepdims=0)
CASES = [
    ModelCase("no_inputs", no_inputs, "no-input"),
    ModelCase("no_outputs", no_outputs, "no-output"),
    ModelCase("input_of_a_reserved_name", given("howsure_scores"), "reserved-name"),
    ModelCase("two_outputs_of_scores", two_outputs, "several-scores"),
    ModelCase("input_of_no_rows", given("s", ()), "input-shape", says="'s'"),
    ModelCase("input_that_is_a_sequence", given_sequence, "input-type"),
    ModelCase(
        "inputs_of_other_numbers_of_rows",
        given("s", (8, N_FEATURES), n_rows=4),
        "input-shape",
    ),
    ModelCase("input_of_a_long_name", given("s" * 3_000_000), "names-too-long"),
    ModelCase(
        "output_that_is_one_number",
        made(node("ReduceMax", ["z"], ["y"], keepdims=0), shape=()),
        "no-scores",
    ),
    ModelCase("output_of_words", made(then("Cast", to=STRING), element_type=STRING), "no-scores"),
    ModelCase("labels_alone", made(LABELS_ONLY, shape=("N",), element_type=INT64), "no-scores"),
    ModelCase("no_classes", lambda: linear(np.zeros((N_FEATURES, 0))), "output-shape"),
    ModelCase(
        "ten_million_classes",
        lambda: wide(10_000_000),
        "too-many-classes",
        status=httpx.codes.REQUEST_ENTITY_TOO_LARGE,
        code="too-large",
        says="10000",
    ),
    ModelCase(
        "weight_that_is_infinite",
        lambda: weighing(np.inf),
        "not-finite",
        status=CREATED,
        code="invalid-dataset",
        says="not finite",
    ),
    # The first rows settle what the model is; one that has no answer is found by the job.
    ModelCase(
        "one_row_without_an_answer",
        lambda: undefined_below_zero(weights()),
        "not-finite",
        status=CREATED,
        code="invalid-dataset",
        says="row 41",
        inputs=no_number_in_row(41),
    ),
    ModelCase(
        "one_row_for_all",
        made(node("ReduceMax", ["z"], ["y"], axes=[0], keepdims=1)),
        "output-rows",
    ),
    ModelCase(
        "rows_that_change_one_another",
        made(
            node("Mul", ["z", "z"], ["s"]),
            node("ReduceSum", ["s", "first"], ["m"], keepdims=1),
            node("Add", ["z", "m"], ["y"]),
            constants={"first": [0]},
        ),
        "rows-mixed",
    ),
    ModelCase("sigmoids", made(then("Sigmoid")), "not-a-distribution"),
    ModelCase(
        "scores_drawn_at_random",
        made(node("RandomNormalLike", ["z"], ["r"]), node("Add", ["z", "r"], ["y"])),
        "random",
    ),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_it_is_no_classifier(hostile, case: ModelCase) -> None:
    assert_told(hostile, case)

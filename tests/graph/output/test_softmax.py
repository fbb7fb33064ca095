"""A softmax at the end is read at its input, if the rows confirm it."""

import numpy as np
import pytest
from graph_models import (
    FLOAT,
    assert_reads_logits,
    constant,
    ending,
    make_model,
    node,
    opsets,
    resolve,
    serve,
    value,
)
from onnx import TensorProto

from service.errors import InvalidOnnxModel

LOGITS = (3 * np.random.default_rng(0).normal(size=(12, 6))).astype(np.float32)
CONFIDENT = (60 * np.random.default_rng(1).normal(size=(12, 6))).astype(np.float32)


@pytest.mark.parametrize("kind", [None, "probabilities"])
@pytest.mark.parametrize("opset", opsets(11, 12, 13, 23))
@pytest.mark.parametrize("attributes", [{}, {"axis": 1}, {"axis": -1}])
def test_the_softmax_of_a_matrix_is_read_at_its_input(attributes, opset, kind):
    model = ending(node("Softmax", ["z"], ["y"], **attributes), opset=opset)
    served = serve(model, {"x": CONFIDENT}, kind=kind)
    assert_reads_logits(served, CONFIDENT, "z")
    assert "softmax of 'z'" in served.choice.inferred


def test_a_log_softmax_is_read_at_its_input():
    assert_reads_logits(
        serve(ending(node("LogSoftmax", ["z"], ["y"])), {"x": CONFIDENT}), CONFIDENT, "z"
    )


@pytest.mark.parametrize(
    "tail",
    [
        [node("Identity", ["p"], ["y"])],
        [node("Cast", ["p"], ["q"], to=TensorProto.DOUBLE), node("Cast", ["q"], ["y"], to=FLOAT)],
        [node("Flatten", ["p"], ["y"], axis=1)],
        [node("Reshape", ["p", "shape"], ["y"])],
        [node("Unsqueeze", ["p", "two"], ["q"]), node("Squeeze", ["q", "two"], ["y"])],
        [node("Dropout", ["p"], ["y"])],
    ],
    ids=lambda tail: "+".join(step.op_type for step in tail),
)
def test_nodes_that_hand_on_values_are_walked_through(tail):
    model = ending(
        node("Softmax", ["z"], ["p"]),
        *tail,
        initializers=[constant("shape", [-1, 6], np.int64), constant("two", [2], np.int64)],
    )
    assert_reads_logits(serve(model, {"x": CONFIDENT}), CONFIDENT, "z")


@pytest.mark.parametrize("to", [TensorProto.FLOAT16, TensorProto.BFLOAT16])
def test_a_softmax_rounded_to_half_precision_is_read_before_it(to):
    model = ending(
        node("Softmax", ["z"], ["p"]), node("Cast", ["p"], ["y"], to=to), element_type=to
    )
    assert_reads_logits(serve(model, {"x": CONFIDENT}), CONFIDENT, "z")


@pytest.mark.parametrize("opset", [11, 12, 13])
def test_a_softmax_over_images_of_one_pixel_is_read_at_its_input(opset):
    model = make_model(
        [node("Identity", ["x"], ["z"]), node("Softmax", ["z"], ["y"], axis=1)],
        inputs=[value("x", ["N", 6, 1, 1])],
        outputs=[value("y", ["N", 6, 1, 1])],
        opset=opset,
    )
    served = serve(model, {"x": CONFIDENT.reshape(12, 6, 1, 1)})
    assert_reads_logits(served, CONFIDENT, "z")


def test_a_softmax_over_the_samples_is_not_believed():
    model = ending(node("Softmax", ["z"], ["y"], axis=0), opset=13)
    with pytest.raises(InvalidOnnxModel, match="do not sum to 1"):
        resolve(model, {"x": LOGITS})


def test_a_softmax_whose_classes_are_shuffled_afterwards_is_not_hooked():
    # Reshaped to pairs, normalised there, and back: no softmax over the six classes.
    model = ending(
        node("Reshape", ["z", "pairs"], ["a"]),
        node("Softmax", ["a"], ["b"], axis=-1),
        node("Reshape", ["b", "rows"], ["y"]),
        initializers=[
            constant("pairs", [-1, 3, 2], np.int64),
            constant("rows", [-1, 6], np.int64),
        ],
    )
    with pytest.raises(InvalidOnnxModel, match="do not sum to 1"):
        resolve(model, {"x": LOGITS})


def test_an_arithmetic_step_after_the_softmax_ends_the_walk():
    model = ending(
        node("Softmax", ["z"], ["p"]),
        node("Mul", ["p", "half"], ["h"]),
        node("Add", ["h", "even"], ["y"]),
        initializers=[constant("half", 0.5), constant("even", 0.5 / 6)],
    )
    choice = resolve(model, {"x": LOGITS})
    assert (choice.kind, choice.tensor) == ("probabilities", "y")

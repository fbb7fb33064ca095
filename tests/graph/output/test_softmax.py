"""A softmax at the end is read at its input, if the rows confirm it."""

import numpy as np
import pytest
from graph_models import (
    CONFIDENT,
    LOGITS,
    assert_reads_logits,
    constant,
    ending,
    make_model,
    opsets,
    resolve,
    serve,
    steps,
    value,
)
from onnx import TensorProto

from service.errors import InvalidOnnxModel

LAST = [("Softmax", "probabilities"), ("Softmax<axis=-1>", None), ("LogSoftmax", None)]


@pytest.mark.parametrize("opset", opsets(11, 12, 13, 23))
@pytest.mark.parametrize(("last", "kind"), LAST)
def test_the_softmax_of_a_matrix_is_read_at_its_input(last, opset, kind):
    model = ending(*steps(f"y = {last}(z)"), opset=opset)
    assert_reads_logits(serve(model, {"x": CONFIDENT}, kind=kind), CONFIDENT, "z")


TAILS = [
    "y = Identity(p)",
    f"q = Cast<to={TensorProto.DOUBLE}>(p); y = Cast<to={TensorProto.FLOAT}>(q)",
    "y = Flatten<axis=1>(p)",
    "y = Reshape(p, shape)",
    "q = Unsqueeze(p, two); y = Squeeze(q, two)",
    "y = Dropout(p)",
]


@pytest.mark.parametrize("tail", TAILS)
def test_nodes_that_hand_on_values_are_walked_through(tail):
    constants = [constant("shape", [-1, 6], np.int64), constant("two", [2], np.int64)]
    model = ending(*steps(f"p = Softmax(z); {tail}"), initializers=constants)
    assert_reads_logits(serve(model, {"x": CONFIDENT}), CONFIDENT, "z")


@pytest.mark.parametrize("to", [TensorProto.FLOAT16, TensorProto.BFLOAT16])
def test_a_softmax_rounded_to_half_precision_is_read_before_it(to):
    model = ending(*steps(f"p = Softmax(z); y = Cast<to={to}>(p)"), element_type=to)
    assert_reads_logits(serve(model, {"x": CONFIDENT}), CONFIDENT, "z")


@pytest.mark.parametrize("opset", [11, 12, 13])
def test_a_softmax_over_images_of_one_pixel_is_read_at_its_input(opset):
    ends = {"inputs": [value("x", ["N", 6, 1, 1])], "outputs": [value("y", ["N", 6, 1, 1])]}
    model = make_model(steps("z = Identity(x); y = Softmax<axis=1>(z)"), opset=opset, **ends)
    assert_reads_logits(serve(model, {"x": CONFIDENT.reshape(12, 6, 1, 1)}), CONFIDENT, "z")


OTHER_AXES = [
    "y = Softmax<axis=0>(z)",
    # Reshaped to pairs, normalised there, and back: no softmax over the six classes.
    "a = Reshape(z, pairs); b = Softmax<axis=-1>(a); y = Reshape(b, rows)",
]


@pytest.mark.parametrize("text", OTHER_AXES)
def test_a_softmax_over_others_than_the_classes_is_not_believed(text):
    shapes = {"pairs": [-1, 3, 2], "rows": [-1, 6]}
    constants = [constant(name, shape, np.int64) for name, shape in shapes.items()]
    with pytest.raises(InvalidOnnxModel, match="sum to 1"):
        resolve(ending(*steps(text), initializers=constants), {"x": LOGITS})


def test_an_arithmetic_step_after_the_softmax_ends_the_walk():
    nodes = steps("p = Softmax(z); h = Mul(p, half); q = Mul(p, half); y = Add(h, q)")
    choice = resolve(ending(*nodes, initializers=[constant("half", 0.5)]), {"x": LOGITS})
    assert (choice.kind, choice.tensor) == ("probabilities", "y")

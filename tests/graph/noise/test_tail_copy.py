"""What follows the last layer, run for every pass."""

import numpy as np
import onnx
import pytest
from classifier_files import skl2onnx_model
from graph_models import (
    N_INPUTS,
    ROWS,
    assert_agree,
    constant,
    draw_masks,
    function_call,
    load,
    logits_choice,
    make_model,
    node,
    passes_of,
    resolve,
    run_session,
    served,
    value,
)
from onnx import numpy_helper
from sklearn.neural_network import MLPClassifier

from service.graph.noise.last_layer_dropout import expose_features

RNG = np.random.default_rng(12)


@pytest.mark.parametrize("classes", [2, 4])
def test_scikit_learns_network(classes):
    rows = RNG.normal(size=(80, 4)).astype(np.float32)
    labels = (rows @ RNG.normal(size=(4, classes))).argmax(axis=1)
    estimator = MLPClassifier((9,), max_iter=60, random_state=0)
    model = skl2onnx_model(estimator, rows, labels, zipmap=False)
    choice = resolve(model, {"X": rows})
    masks = draw_masks(25, 9)
    outputs = served(model, masks, {"X": rows}, choice=choice)
    hidden = np.maximum(rows @ estimator.coefs_[0] + estimator.intercepts_[0], 0)
    logits = passes_of(hidden, masks, estimator.coefs_[1], estimator.intercepts_[1])
    if classes == 2:  # one score, that of class 1
        logits = np.concatenate([np.zeros_like(logits), logits], axis=2)
    assert_agree(outputs, logits)


def test_probabilities_whose_logits_are_out_of_reach():
    """The scores are squared and normalised: what follows the layer is run for every pass."""
    model = make_model(
        [
            node("MatMul", ["x", "w"], ["z"]),
            node("Mul", ["z", "z"], ["s"]),
            node("ReduceSum", ["s", "one"], ["total"]),
            node("Div", ["s", "total"], ["y"]),
        ],
        inputs=[value("x", ("N", N_INPUTS))],
        initializers=[
            constant("w", RNG.normal(size=(N_INPUTS, 4))),
            constant("one", [1], np.int64),
        ],
    )
    weights = onnx.numpy_helper.to_array(model.graph.initializer[0]).astype(np.float64)
    masks = draw_masks(15, N_INPUTS)
    choice = resolve(model, {"x": ROWS})
    assert choice.kind == "probabilities"
    outputs = served(model, masks, {"x": ROWS}, choice=choice)
    squares = passes_of(ROWS, masks, weights, 0) ** 2
    assert_agree(outputs, np.log(squares / squares.sum(axis=2, keepdims=True)))


def pooled(*shape_nodes, shape, batch="N", initializers=(), opset=17):
    """Return a 1x1 convolution whose pooled maps are reshaped, and its kernel."""
    kernel = np.random.default_rng(5).normal(size=(4, 3, 1, 1)).astype(np.float32)
    model = make_model(
        [
            node("Conv", ["x", "K"], ["z"]),
            node("GlobalAveragePool", ["z"], ["p"]),
            *shape_nodes,
            node("Reshape", ["p", shape], ["y"]),
        ],
        inputs=[value("x", (batch, 3, 5, 5))],
        outputs=[value("y", (batch, 4))],
        initializers=[constant("K", kernel), *initializers],
        opset=opset,
    )
    return model, kernel[:, :, 0, 0]


def shape_of_input(tensor):
    """Return nodes that reshape to what a tensor's first axis says, as torch writes view(n, -1)."""
    return [
        node("Shape", [tensor], ["s"]),
        node("Gather", ["s", "zero"], ["n"]),
        node("Unsqueeze", ["n", "axes"], ["rows"]),
        node("Concat", ["rows", "others"], ["shape"], axis=0),
    ]


def first_of_shape(tensor):
    return [
        node("Shape", [tensor], ["rows"], start=0, end=1),
        node("Concat", ["rows", "others"], ["shape"], axis=0),
    ]


INTEGERS = [
    constant("zero", 0, np.int64),
    constant("axes", [0], np.int64),
    constant("others", [-1], np.int64),
]


@pytest.mark.parametrize("make", [shape_of_input, first_of_shape])
@pytest.mark.parametrize("tensor", ["x", "z", "p"])
def test_a_tail_that_asks_for_the_number_of_rows(make, tensor):
    model, kernel = pooled(*make(tensor), shape="shape", initializers=INTEGERS)
    assert_pools(model, kernel, RNG.normal(size=(6, 3, 5, 5)))


@pytest.mark.parametrize("sizes", [(6, 4), (6, -1), (-1, 4), (0, -1)])
def test_a_fixed_batch_with_its_number_of_rows_in_the_tail(sizes):
    shape = constant("shape", sizes, np.int64)
    model, kernel = pooled(shape="shape", batch=6, initializers=[shape])
    assert_pools(model, kernel, RNG.normal(size=(6, 3, 5, 5)))


def assert_pools(model, kernel, images):
    images = images.astype(np.float32)
    masks = draw_masks(11, 3, 5, 5)
    outputs = served(model, masks, {"x": images}, choice=logits_choice(4))
    logits = np.einsum("nmchw,kc->nmk", images[:, np.newaxis] * np.float64(masks), kernel) / 25
    assert_agree(outputs, logits)


def test_a_last_layer_inside_of_a_function():
    weights = RNG.normal(size=(N_INPUTS, 3)).astype(np.float32)
    body = [node("MatMul", ["a", "w"], ["m"]), node("Relu", ["m"], ["o"])]
    weight = numpy_helper.from_array(weights)
    call, options = function_call([node("Constant", [], ["w"], value=weight), *body], "x", "y")
    model = make_model(call, inputs=[value("x", ("N", N_INPUTS))], **options)
    features = run_session(expose_features(load(model), logits_choice(3)), {"x": ROWS})
    np.testing.assert_array_equal(features["howsure_features"], ROWS)
    masks = draw_masks(8, N_INPUTS)
    outputs = served(model, masks, {"x": ROWS}, choice=logits_choice(3))
    assert_agree(outputs, np.maximum(passes_of(ROWS, masks, weights, 0), 0))

"""What follows the last layer, run for every pass."""

import numpy as np
import pytest
from classifier_files import skl2onnx_model
from graph_models import (
    KERNEL,
    N_CLASSES,
    N_INPUTS,
    ROWS,
    WEIGHTS,
    assert_agree,
    constant,
    draw_masks,
    function_call,
    last_layer_model,
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
    model = last_layer_model(
        node("MatMul", ["h", "W"], ["z"]),
        node("Mul", ["z", "z"], ["s"]),
        node("ReduceSum", ["s", "one"], ["total"]),
        node("Div", ["s", "total"], ["y"]),
        initializers=[constant("one", [1], np.int64)],
    )
    masks, rows = draw_masks(15, N_INPUTS), np.abs(ROWS)
    choice = resolve(model, {"x": rows})
    assert choice.kind == "probabilities"
    outputs = served(model, masks, {"x": rows}, choice=choice)
    squares = passes_of(rows, masks, WEIGHTS[2][:N_INPUTS], 0) ** 2
    assert_agree(outputs, np.log(squares / squares.sum(axis=2, keepdims=True)))


def assert_pools(*nodes, shape=(-1,), batch="N"):
    """Check a 1x1 convolution whose pooled maps ``p`` are reshaped: by ``nodes``, or to a shape."""
    model = last_layer_model(
        node("Conv", ["h", "K"], ["z"]),
        node("GlobalAveragePool", ["z"], ["p"]),
        *nodes,
        node("Reshape", ["p", "sizes" if nodes else "shape"], ["y"]),
        initializers=[
            constant("K", KERNEL),
            constant("shape", shape, np.int64),
            constant("zero", 0, np.int64),
            constant("axes", [0], np.int64),
        ],
        shape=(batch, 3, 5, 5),
    )
    images = RNG.normal(size=(6, 3, 5, 5)).astype(np.float32)
    masks = draw_masks(11, 3, 5, 5)
    outputs = served(model, masks, {"x": images})
    dropped = np.maximum(images, 0)[:, np.newaxis] * np.float64(masks)
    logits = np.einsum("nmchw,kc->nmk", dropped, np.float32(KERNEL[:, :, 0, 0])) / 25
    assert_agree(outputs, logits)


def number_of_rows(tensor):
    """Return nodes that ask for a tensor's first axis, as torch writes view(n, -1)."""
    return [
        node("Shape", [tensor], ["s"]),
        node("Gather", ["s", "zero"], ["n"]),
        node("Unsqueeze", ["n", "axes"], ["rows"]),
    ]


def first_of_shape(tensor):
    return [node("Shape", [tensor], ["rows"], start=0, end=1)]


@pytest.mark.parametrize("make", [number_of_rows, first_of_shape])
@pytest.mark.parametrize("tensor", ["x", "z", "p"])
def test_a_tail_that_asks_for_the_number_of_rows(make, tensor):
    assert_pools(*make(tensor), node("Concat", ["rows", "shape"], ["sizes"], axis=0))


@pytest.mark.parametrize("shape", [(6, N_CLASSES), (6, -1), (-1, N_CLASSES), (0, -1)])
def test_a_fixed_batch_with_its_number_of_rows_in_the_tail(shape):
    assert_pools(shape=shape, batch=6)


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

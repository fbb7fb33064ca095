"""Dropout before the last layer inside the graph, against numpy on the same masks."""

from pathlib import Path

import numpy as np
import pytest
from classifier_files import skl2onnx_model
from graph_models import (
    BIASES,
    KERNEL,
    LOGS,
    N_CLASSES,
    N_HIDDEN,
    N_INPUTS,
    ROWS,
    VARIANCE,
    WEIGHTS,
    assert_agree,
    constant,
    draw_masks,
    dropout,
    function_call,
    last_hidden,
    last_layer_model,
    load,
    logits_choice,
    make_model,
    network,
    opsets,
    passes_of,
    resolve,
    run_session,
    served,
    spread_of,
    steps,
    value,
)
from onnx import ModelProto, TensorProto, helper, numpy_helper
from sklearn.neural_network import MLPClassifier

from service.errors import InvalidConfig
from service.graph.noise.last_layer_dropout import expose_features
from service.graph.serving import build_serving_graph

PASSES = Path(__file__).parents[2] / "data" / "passes"
RNG = np.random.default_rng(12)


@pytest.mark.parametrize("scale", [1.0, 6.0])
@pytest.mark.parametrize("n_passes", [2, 100])
@pytest.mark.parametrize("n_classes", [2, 1000])
def test_numpy_agrees_on_the_same_masks(n_classes, n_passes, scale):
    rng = np.random.default_rng(n_classes + n_passes)
    weights = (scale * rng.normal(size=(32, n_classes)) / np.sqrt(32)).astype(np.float32)
    bias = rng.normal(size=n_classes).astype(np.float32)
    model = make_model(
        steps("y = Gemm(x, w, b)"),
        inputs=[value("x", ("N", 32))],
        initializers=[constant("w", weights), constant("b", bias)],
    )
    rows = 3 if n_classes == 1000 else 12
    features = np.abs(rng.normal(size=(rows, 32))).astype(np.float32)
    masks = draw_masks(n_passes, 32, rate=0.1)
    outputs = served(model, masks, {"x": features}, choice=logits_choice(n_classes))
    assert_agree(outputs, passes_of(features, masks, weights, bias))


@pytest.mark.parametrize("opset", opsets(*range(11, 27)))
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_every_opset_and_precision(opset, dtype):
    kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    last = dropout("h1", "d1", 0.25, opset=opset)
    model = network((), last, opset=opset, dtype=dtype, element_type=kind)
    masks, rows = draw_masks(20, N_HIDDEN), ROWS.astype(dtype)
    choice = logits_choice(precision=np.dtype(dtype).name)
    outputs = served(model, masks, {"x": rows}, choice=choice)
    assert (outputs[VARIANCE].dtype, outputs[LOGS].dtype) == (np.float32, dtype)
    assert outputs[LOGS].shape == (len(rows), 20, N_CLASSES)
    assert_agree(outputs, passes_of(last_hidden(rows), masks, WEIGHTS[2], BIASES[2]))


def test_float16_comes_out_as_its_digits_allow():
    model = network(dtype=np.float16, element_type=TensorProto.FLOAT16)
    masks = draw_masks(10, N_HIDDEN)
    outputs = served(model, masks, {"x": ROWS.astype(np.float16)})
    expected = spread_of(passes_of(last_hidden(ROWS), masks, WEIGHTS[2], BIASES[2]))
    np.testing.assert_allclose(outputs[VARIANCE], expected, rtol=0.1, atol=1e-5)


def test_all_else_stays_as_it_was_and_log_probabilities_come_with_the_scores_alone():
    graph = build_serving_graph(load(network()), logits_choice(), top_k=(1,), with_scores=True)
    plain = run_session(graph, {"x": ROWS})
    outputs = served(network(), draw_masks(5, N_HIDDEN), {"x": ROWS})
    assert list(outputs) == [*plain, VARIANCE, LOGS]
    np.testing.assert_equal({name: outputs[name] for name in plain}, plain)
    without = served(network(), draw_masks(5, N_HIDDEN), {"x": ROWS}, with_scores=False)
    assert VARIANCE in without
    assert LOGS not in without


def test_features_that_are_not_numbers_are_seen():
    rows = ROWS.copy()
    rows[2] = np.nan
    outputs = served(network(), draw_masks(5, N_HIDDEN), {"x": rows})
    expected = np.arange(len(rows)) == 2
    np.testing.assert_array_equal(np.isnan(outputs[VARIANCE]), expected)
    np.testing.assert_array_equal(np.isnan(outputs[LOGS]).all(axis=(1, 2)), expected)


@pytest.mark.parametrize(
    "name", ["last_layer_dropout_cnn", "small_cnn", "hidden_dropout_cnn_dynamo", "squeezenet_like"]
)
def test_torch_exports(name):
    """The whole tail is run again in numpy from the features that the graph shows."""
    with np.load(PASSES / "digits_passes.npz") as arrays:
        feeds = {"inputs": arrays["evaluation_inputs"][:40]}
    model = ModelProto.FromString((PASSES / f"{name}.onnx").read_bytes())
    choice = logits_choice(10, "logits")
    features = run_session(expose_features(load(model), choice), feeds)
    assert list(features) == ["howsure_features"]
    features = features["howsure_features"].astype(np.float64)
    masks = draw_masks(30, *features.shape[1:])
    last = [step for step in model.graph.node if step.op_type in ("Gemm", "Conv")][-1]
    tensors = {tensor.name: tensor for tensor in model.graph.initializer}
    weight, bias = (np.float64(numpy_helper.to_array(tensors[name])) for name in last.input[1:])
    dropped = features[:, np.newaxis] * masks
    if weight.ndim == 4:  # 1x1 convolution, rectifier, mean over pixels
        maps = np.einsum("nmchw,kc->nmkhw", dropped, weight[:, :, 0, 0])
        logits = np.maximum(maps + bias[:, np.newaxis, np.newaxis], 0).mean(axis=(3, 4))
    else:
        logits = dropped @ weight.T + bias
    assert_agree(served(model, masks, feeds, choice=choice), logits)


def test_a_model_without_a_last_layer_is_refused_by_both_steps():
    model = make_model(steps("y = Softmax(x)"))
    for step in (
        lambda: expose_features(load(model), logits_choice()),
        lambda: served(model, draw_masks(4, 3), {"x": ROWS}),
    ):
        with pytest.raises(InvalidConfig, match="last_layer_dropout_variance"):
            step()


# What follows the last layer is run for every pass.


@pytest.mark.parametrize("classes", [2, 4])
def test_scikit_learns_network(classes):
    rows = RNG.normal(size=(80, 4)).astype(np.float32)
    labels = (rows @ RNG.normal(size=(4, classes))).argmax(axis=1)
    estimator = MLPClassifier((9,), max_iter=60, random_state=0)
    model = skl2onnx_model(estimator, rows, labels, zipmap=False)
    masks = draw_masks(25, 9)
    outputs = served(model, masks, {"X": rows}, choice=resolve(model, {"X": rows}))
    hidden = np.maximum(rows @ estimator.coefs_[0] + estimator.intercepts_[0], 0)
    logits = passes_of(hidden, masks, estimator.coefs_[1], estimator.intercepts_[1])
    if classes == 2:  # one score, that of class 1
        logits = np.concatenate([np.zeros_like(logits), logits], axis=2)
    assert_agree(outputs, logits)


def test_probabilities_whose_logits_are_out_of_reach():
    """The scores are squared and normalised."""
    text = "z = MatMul(h, W); s = Mul(z, z); total = ReduceSum(s, one); y = Div(s, total)"
    model = last_layer_model(*steps(text), initializers=[constant("one", [1], np.int64)])
    masks, rows = draw_masks(15, N_INPUTS), np.abs(ROWS)
    choice = resolve(model, {"x": rows})
    assert choice.kind == "probabilities"
    outputs = served(model, masks, {"x": rows}, choice=choice)
    squares = passes_of(rows, masks, WEIGHTS[2][:N_INPUTS], 0) ** 2
    assert_agree(outputs, np.log(squares / squares.sum(axis=2, keepdims=True)))


# As torch writes view(n, -1): nodes that ask for a tensor's first axis.
GATHERED = "s = Shape({}); n = Gather(s, zero); rows = Unsqueeze(n, axes)"
SLICED = "rows = Shape<start=0, end=1>({})"


RESHAPES = [
    *((ask.format(name), [-1], "N") for ask in (GATHERED, SLICED) for name in ("x", "z", "p")),
    *((None, shape, 6) for shape in ([6, N_CLASSES], [6, -1], [-1, N_CLASSES], [0, -1])),
]


@pytest.mark.parametrize(("rows", "shape", "batch"), RESHAPES)
def test_a_tail_that_reshapes_to_the_number_of_rows(rows, shape, batch):
    """A 1x1 convolution whose pooled maps are reshaped, for any batch or for one of 6 rows."""
    text = "y = Reshape(p, shape)"
    if rows is not None:
        text = f"{rows}; sizes = Concat<axis=0>(rows, shape); y = Reshape(p, sizes)"
    numbers = {"shape": shape, "zero": 0, "axes": [0]}
    constants = [constant(name, values, np.int64) for name, values in numbers.items()]
    model = last_layer_model(
        *steps(f"z = Conv(h, K); p = GlobalAveragePool(z); {text}"),
        initializers=[constant("K", KERNEL), *constants],
        shape=(batch, 3, 5, 5),
    )
    images = RNG.normal(size=(6, 3, 5, 5)).astype(np.float32)
    masks = draw_masks(11, 3, 5, 5)
    outputs = served(model, masks, {"x": images})
    dropped = np.maximum(images, 0)[:, np.newaxis] * np.float64(masks)
    logits = np.einsum("nmchw,kc->nmk", dropped, np.float32(KERNEL[:, :, 0, 0])) / 25
    assert_agree(outputs, logits)


def test_a_last_layer_inside_of_a_function():
    weights = RNG.normal(size=(N_INPUTS, 3)).astype(np.float32)
    weight = helper.make_node("Constant", [], ["w"], value=numpy_helper.from_array(weights))
    call, options = function_call([weight, *steps("m = MatMul(a, w); o = Relu(m)")], "x", "y")
    model = make_model(call, inputs=[value("x", ("N", N_INPUTS))], **options)
    features = run_session(expose_features(load(model), logits_choice(3)), {"x": ROWS})
    np.testing.assert_array_equal(features["howsure_features"], ROWS)
    masks = draw_masks(8, N_INPUTS)
    outputs = served(model, masks, {"x": ROWS}, choice=logits_choice(3))
    assert_agree(outputs, np.maximum(passes_of(ROWS, masks, weights, 0), 0))

"""Dropout before the last layer inside the graph, against runs of the model on dropped features."""

import re

import numpy as np
import pytest
from classifier_files import skl2onnx_model
from graph_models import (
    branched,
    constant,
    dropout,
    function_call,
    load,
    logits_choice,
    make_model,
    node,
    opsets,
    resolve,
    run_session,
    steps,
    value,
)
from onnx import helper, numpy_helper
from scipy.special import log_softmax, softmax
from sklearn.neural_network import MLPClassifier

from service.errors import InvalidConfig
from service.graph.noise.last_layer import find_last_layer
from service.graph.noise.last_layer_dropout import expose_features
from service.graph.serving import build_serving_graph

VARIANCE, LOGS = "howsure_last_layer_dropout_variance", "howsure_last_layer_log_probabilities"
RNG = np.random.default_rng(12)
ROWS = RNG.normal(size=(7, 6)).astype(np.float32)
IMAGES = RNG.normal(size=(6, 3, 5, 5)).astype(np.float32)
WEIGHTS = {
    "W": RNG.normal(size=(6, 5)),
    "V": RNG.normal(size=(5, 6)),
    "K": RNG.normal(size=(5, 3, 1, 1)),
    "wide": np.ones((5, 3, 2, 3)),
    "b": np.arange(5),
    "scale": 0.01,
    "turned": np.ones((3, 7)),
}
INTEGERS = {"one": [1], "zero": 0, "axes": [0], "any": [-1]}
INTEGERS |= {"six_five": [6, 5], "six_any": [6, -1], "any_five": [-1, 5], "zero_any": [0, -1]}
CONSTANTS = [
    *(constant(name, values, np.int64) for name, values in INTEGERS.items()),
    constant("Q", RNG.integers(0, 255, size=(6, 5)), np.uint8),
    constant("middle", 128, np.uint8),
]


def model_of(text, *nodes, shape=("N", 6), dtype=np.float32, **options):
    """Return a model whose features ``h`` are ``x`` past a rectifier."""
    kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    nodes = [*steps("h = Relu(x)"), *nodes, *steps(text)]
    weights = [constant(name, values, dtype) for name, values in WEIGHTS.items()]
    read = {name for step in nodes for name in step.input}
    options |= {"inputs": [value("x", shape, kind)], "outputs": [value("y", None, kind)]}
    tensors = [tensor for tensor in (*weights, *CONSTANTS) if tensor.name in read]
    return make_model(nodes, initializers=tensors, **options)


def draw_masks(n_passes, *shape, rate=0.25):
    kept = np.random.default_rng(0).random((n_passes, *shape)) >= rate
    return kept.astype(np.float32) / np.float32(1 - rate)


def served(model, masks, feeds, choice, **options):
    options = {"top_k": (1,), "with_scores": True, "last_layer_masks": masks} | options
    return run_session(build_serving_graph(load(model), choice, **options), feeds)


def spread_of(logits):
    """Return the 2-norm of the passes' covariance, by singular values; logits (n, M, K)."""
    probabilities = softmax(np.float64(logits), axis=2)
    deviations = probabilities - probabilities.mean(axis=1, keepdims=True)
    largest = np.linalg.svd(deviations, compute_uv=False)[:, 0]
    return largest**2 / (logits.shape[1] - 1)


def assert_agree(outputs, logits, *, rtol=1e-4):
    expected = spread_of(logits)
    resolved = expected >= 1e-12
    assert resolved.any()
    np.testing.assert_allclose(outputs[VARIANCE][resolved], expected[resolved], rtol=rtol)
    logs = log_softmax(np.float64(logits), axis=2)
    np.testing.assert_allclose(outputs[LOGS], logs, rtol=rtol, atol=max(rtol, 1e-4) / 10)


def check(model, rows, *, kind="logits", n_passes=9, rtol=1e-4, **options):
    """Check the passes of a model of ``model_of``: masks are positive and pass the rectifier."""
    choice = resolve(model, {"x": rows}, kind=kind)
    features = run_session(expose_features(load(model), choice), {"x": rows})
    np.testing.assert_array_equal(np.maximum(features["howsure_features"], 0), np.maximum(rows, 0))
    masks = draw_masks(n_passes, *rows.shape[1:], **options)
    runs = [run_session(model, {"x": rows * mask.astype(rows.dtype)})["y"] for mask in masks]
    logits = np.stack(runs, axis=1).astype(np.float64)
    outputs = served(model, masks, {"x": rows}, choice)
    assert_agree(outputs, logits if choice.kind == "logits" else np.log(logits), rtol=rtol)
    return outputs


# As torch writes view(n, -1): nodes that read the first axis of a tensor.
GATHERED = "s = Shape({}); n = Gather(s, zero); rows = Unsqueeze(n, axes)"
SLICED = "rows = Shape<start=0, end=1>({})"
RESHAPED = "sizes = Concat<axis=0>(rows, any); y = Reshape(p, sizes)"
POOLED = "z = Conv(h, K); p = GlobalAveragePool(z)"
OF_ROWS = [
    "y = Gemm<transB=1, alpha=0.5>(h, V, b)",
    "y = Gemm<transB=0, alpha=0.5>(h, W, b)",
    "y = MatMul(x, W)",
    # Weights may be made from constants.
    "w = DequantizeLinear(Q, scale, middle); y = MatMul(h, w)",
    "a = Identity(W); t = Transpose(a); w = Mul(t, t); y = Gemm<transB=1>(h, w)",
    "w = Constant<value=float[6, 2] {1, 1, 1, 1, 1, 1, 2, 3, 4, 5, 6, 7}>(); y = MatMul(h, w)",
]
OF_IMAGES = [
    *(f"{POOLED}; y = Flatten(p)", "z = Conv(h, K); y = Flatten(z)"),
    "z = Conv<kernel_shape=[1, 1]>(h, K); r = Relu(z); y = ReduceMean<axes=[2, 3], keepdims=0>(r)",
    *(f"{POOLED}; {GATHERED.format(name)}; {RESHAPED}" for name in "xp"),
    *(f"{POOLED}; {SLICED.format(name)}; {RESHAPED}" for name in "xz"),
]
SIZES = ("six_five", "six_any", "any_five", "zero_any")
OF_SIX_IMAGES = [f"{POOLED}; y = Reshape(p, {sizes})" for sizes in SIZES]
# Logits that cannot be read: only `y` holds scores.
SQUARES = "z = MatMul(h, W); s = Mul(z, z); total = ReduceSum(s, one); y = Div(s, total)"


ENDINGS = [
    *((text, ROWS, ("N", 6), "logits") for text in OF_ROWS),
    *((text, IMAGES, ("N", 3, "height", "width"), "logits") for text in OF_IMAGES),
    *((text, IMAGES, (6, 3, 5, 5), "logits") for text in OF_SIX_IMAGES),
    (SQUARES, np.abs(ROWS), ("N", 6), None),
]


@pytest.mark.parametrize(("text", "rows", "shape", "kind"), ENDINGS)
def test_layers_and_tails_as_exporters_write_them(text, rows, shape, kind):
    # ONNX Runtime multiplies such weights by 8-bit features.
    tolerance = 0.1 if "DequantizeLinear" in text else 1e-4
    check(model_of(text, shape=shape), rows, kind=kind, rtol=tolerance)


@pytest.mark.parametrize("opset", opsets(*range(11, 27)))
@pytest.mark.parametrize(
    ("dtype", "tolerance"), [(np.float16, 0.1), (np.float32, 1e-4), (np.float64, 1e-4)]
)
def test_every_opset_and_precision(opset, dtype, tolerance):
    """The model's own Dropout before the layer is replaced; float16 is computed as float32."""
    drop = dropout("h", "d", 0.3, opset=opset)
    model = model_of("m = MatMul(d, W); y = Add(m, b)", *drop, opset=opset, dtype=dtype)
    outputs = check(model, ROWS.astype(dtype), rtol=tolerance, n_passes=20)
    logs = np.float64 if dtype == np.float64 else np.float32
    assert (outputs[VARIANCE].dtype, outputs[LOGS].dtype) == (np.float32, logs)
    assert find_last_layer(load(model).graph, "y").rate == pytest.approx(0.3, rel=1e-6)


@pytest.mark.parametrize(("text", "rate"), [
    ("y = MatMul(h, W)", None), ("d = Relu(e); y = MatMul(d, W)", None),
    ("ratio = ReduceMax<keepdims=0>(x); d = Dropout(h, ratio); y = MatMul(d, W)", None),
    ("d = Flatten<axis=1>(e); y = MatMul(d, W)", 0.3),
])  # fmt: skip
def test_the_rate_is_that_of_the_dropout_right_before_the_layer(text, rate):
    model = model_of(text, *dropout("h", "e", 0.3))
    assert find_last_layer(load(model).graph, "y").rate == rate


def weights_as_inputs():
    """Return a model of an old file, whose weights are inputs with a default."""
    model = model_of("y = MatMul(h, W)", ir_version=3)
    model.graph.input.append(value("W", (6, 5)))
    return model


def in_function():
    weights = numpy_helper.from_array(WEIGHTS["W"].astype(np.float32))
    body = [node("Constant", [], ["w"], value=weights), *steps("m = MatMul(a, w); o = Relu(m)")]
    call, options = function_call(body, "h", "c")
    return model_of("y = Identity(c)", *call, **options)


@pytest.mark.parametrize("make", [weights_as_inputs, in_function])
def test_weights_may_be_inputs_and_layers_in_functions(make):
    check(make(), ROWS)


@pytest.mark.parametrize(("n_classes", "n_passes"), [(2, 2), (2, 100), (1000, 2), (1000, 100)])
def test_any_number_of_classes_and_passes(n_classes, n_passes):
    weights = 6 * RNG.normal(size=(6, n_classes)) / np.sqrt(6)
    last = node("Constant", [], ["w"], value=constant("w", weights))
    check(model_of("y = MatMul(h, w)", last), ROWS[:3], n_passes=n_passes, rate=0.1)


def spread_in_graph(probabilities):
    """Return what the graph makes of passes (M, K): pass m is row m of the layer's weights."""
    n_passes, n_classes = probabilities.shape
    last = node("Constant", [], ["w"], value=constant("w", np.log(probabilities), np.float64))
    model = model_of("y = MatMul(x, w)", last, shape=("N", n_passes), dtype=np.float64)
    choice = logits_choice(n_classes, precision="float64")
    feeds = {"x": np.ones((1, n_passes))}
    return served(model, np.eye(n_passes, dtype=np.float32), feeds, choice)[VARIANCE][0]


@pytest.mark.parametrize("n_classes", [2, 9, 50])
@pytest.mark.parametrize("n_passes", [2, 9])
def test_equal_passes_have_no_spread_and_certain_ones_keep_their_digits(n_passes, n_classes):
    one = RNG.dirichlet(np.ones(n_classes))
    assert spread_in_graph(np.tile(one, (n_passes, 1))) == 0
    for rest in (1e-4, 1e-9, 1e-14):
        others = rest * RNG.random((n_passes, n_classes - 1)) / n_classes
        change = others - others.mean(axis=0)
        deviations = np.column_stack([-change.sum(axis=1), change])
        expected = np.linalg.svd(deviations, compute_uv=False)[0] ** 2 / (n_passes - 1)
        spread = spread_in_graph(np.column_stack([1 - others.sum(axis=1), others]))
        np.testing.assert_allclose(spread, expected, rtol=1e-4)


@pytest.mark.parametrize("ratio", [0.9, 0.999, 0.99999])
@pytest.mark.parametrize("size", [3, 100])
def test_variances_that_almost_tie_are_told_apart_well_enough(size, ratio):
    # Deviations sum to 0 over passes and over classes, which takes one dimension.
    square = np.column_stack([np.ones(size), RNG.normal(size=(size, size - 1))])
    basis = np.linalg.qr(square)[0][:, 1:]
    variances = np.full(size - 1, ratio)
    variances[0] = 1
    deviations = basis @ np.diag(np.sqrt(variances)) @ basis.T
    scale = 0.5 / size / np.abs(deviations).max()
    spread = spread_in_graph(1 / size + scale * deviations)
    np.testing.assert_allclose(spread, scale**2 / (size - 1), rtol=1e-4)


def test_all_else_stays_as_it_was_and_log_probabilities_come_with_the_scores_alone():
    model, masks = model_of("y = MatMul(h, W)"), draw_masks(5, 6)
    rows = np.vstack([ROWS, np.full((1, 6), np.nan, np.float32)])
    plain, outputs = (served(model, m, {"x": rows}, logits_choice()) for m in (None, masks))
    assert list(outputs) == [*plain, VARIANCE, LOGS]
    np.testing.assert_equal({name: outputs[name] for name in plain}, plain)
    # Features that are not numbers are seen.
    for lacking in (np.isnan(outputs[VARIANCE]), np.isnan(outputs[LOGS]).all(axis=(1, 2))):
        np.testing.assert_array_equal(lacking, np.arange(8) == 7)
    without = served(model, masks, {"x": rows}, logits_choice(), with_scores=False)
    assert {VARIANCE, LOGS} & {*without} == {VARIANCE}


@pytest.mark.parametrize("classes", [2, 4])
def test_scikit_learns_network(classes):
    rows = RNG.normal(size=(80, 4)).astype(np.float32)
    labels = (rows @ RNG.normal(size=(4, classes))).argmax(axis=1)
    estimator = MLPClassifier((9,), max_iter=60, random_state=0)
    model = skl2onnx_model(estimator, rows, labels, zipmap=False)
    masks = draw_masks(25, 9)
    hidden = np.maximum(rows @ estimator.coefs_[0] + estimator.intercepts_[0], 0)
    logits = hidden[:, np.newaxis] * masks @ estimator.coefs_[1] + estimator.intercepts_[1]
    if classes == 2:  # one score, that of class 1
        logits = np.concatenate([np.zeros_like(logits), logits], axis=2)
    assert_agree(served(model, masks, {"X": rows}, resolve(model, {"X": rows})), logits)


def refusal(model):
    with pytest.raises(InvalidConfig) as caught:
        expose_features(load(model), logits_choice())
    (violation,) = caught.value.violations
    assert violation.location == "config.measures"
    return violation.message


OTHER_ENDINGS = [
    ("y = Softmax(h)", "over Softmax, Relu they lead to the graph's input 'x'"),
    ("y = Conv(h, x)", "input 'x'"),
    ("y = MatMul(turned, h)", "on the left"),
    ("y = Gemm<transA=1>(h, W)", "transposes"),
    ("y = Gemm(h, W, h)", "addend"),
    ('y = Einsum<equation="nd,dk->nk">(h, W)', "Einsum"),
    ("y = Identity(W)", "do not depend"),
    ("y = MatMul(h, fed)", "graph's input"),
    ("w = RandomNormal<shape=[6, 5]>(); y = MatMul(h, w)", "RandomNormal"),
    ("z = MatMul(h, W); r = RandomNormalLike(z); y = Add(z, r)", "RandomNormalLike"),
    # A residual connection around the layer.
    ("z = MatMul(h, W); skipped = MatMul(x, W); y = Add(z, skipped)", "2 .* 'x', 'h'"),
    ("z = Conv(h, wide); y = Flatten(z)", "2x3"),
    ("z = MatMul(branch, W); y = Mul(z, branch)", "If"),
    # Classifiers of one node have no layer.
    ("label, y = ai.onnx.ml.TreeEnsembleClassifier(h)", "ai.onnx.ml.TreeEnsembleClassifier"),
    ("label, y = ai.onnx.ml.LinearClassifier<coefficients=[0.5]>(h)", "ml.LinearClassifier"),
]


@pytest.mark.parametrize(("text", "named"), OTHER_ENDINGS)
def test_other_endings(text, named):
    branch = branched(steps("a = Neg(h)"), "h", "branch")
    model = model_of(text, *(branch if "branch" in text else ()))
    model.graph.input.append(value("fed", (6, 5)))
    assert re.search(named, refusal(model))


def test_thousands_of_layers_are_counted_from_one_index():
    """With an index for each layer, 4,000 of them take a minute."""
    names = [f"p{i}" for i in range(4000)]
    layers = [node("Conv", ["h", "K"], [name]) for name in names]
    model = model_of("y = Identity(c)", *layers, node("Concat", names, ["c"], axis=1))
    assert "4000" in refusal(model)

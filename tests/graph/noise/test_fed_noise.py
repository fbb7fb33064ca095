"""Dropout and random operators as noise that is fed, and models whose nodes cannot be fed."""

from functools import partial
from pathlib import Path

import numpy as np
import pytest
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
    run_session,
    steps,
    value,
)
from onnx import AttributeProto, TensorProto, helper

from service.errors import InvalidConfig, InvalidOnnxModel
from service.graph.description import NoiseSite
from service.graph.noise.dropout import expose_dropout
from service.graph.noise.random_operators import expose_random, has_random
from service.graph.serving import build_serving_graph

PASSES = Path(__file__).parents[2] / "data" / "passes"
RNG = np.random.default_rng(3)
ROWS = RNG.normal(size=(7, 6)).astype(np.float32)
MASKS = [(RNG.random((7, 6)) > 0.4) * np.float32(scale) for scale in (4 / 3, 2)]
ONE_ROW = [mask[:1] for mask in MASKS]
# Without a kernel of its own float16 runs as float32, rounded where nodes meet.
ROUNDING = {np.float16: 1e-2, np.float32: 1e-6, np.float64: 1e-6}
DROPOUT = partial(expose_dropout, rate=None)


def model_of(*nodes, dtype=np.float32, n_classes=6, width=6, **options):
    options["element_type"] = kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    inputs = [value("x", ("N", width), kind)]
    return make_model(nodes, inputs=inputs, shape=("N", n_classes), **options)


def fed(model, *noise, rows=ROWS, expose=DROPOUT, **options):
    """Return the model's scores, all outputs and sites; noise that is left out is neutral."""
    options = {"input": "x", "tensor": "y", "n_classes": 6} | options
    loaded = load(model)
    sites = expose(loaded, options["tensor"])
    feeds = {options["input"]: rows}
    feeds |= {site.name: np.full(1, site.neutral, np.float32) for site in sites}
    feeds |= {site.name: array for site, array in zip(sites, noise, strict=False)}
    precision = "float64" if rows.dtype == np.float64 else "float32"
    choice = logits_choice(options["n_classes"], options["tensor"], precision=precision)
    graph = build_serving_graph(loaded, choice, top_k=(1,), with_scores=True, sites=sites)
    outputs = run_session(graph, feeds)
    return outputs["howsure_scores"], outputs, sites


def two_dropouts(opset=17, **options):
    # ONNX Runtime drops in training mode as well, but not behind another node.
    first = [*steps("n = Neg(x)"), *dropout("n", "d0", 0.25, opset=opset, training=True)]
    second = [*steps("h = Relu(d0)"), *dropout("h", "d1", None, opset=opset)]
    return model_of(*first, *second, *steps("y = Neg(d1)"), opset=opset, **options)


@pytest.mark.parametrize("opset", opsets(*range(11, 27)))
@pytest.mark.parametrize("dtype", ROUNDING)
def test_masks_multiply_activations_and_ones_change_no_bit(opset, dtype):
    model, rows = two_dropouts(opset, dtype=dtype), ROWS.astype(dtype)
    for masks in (MASKS, ONE_ROW):
        scores, outputs, sites = fed(model, *masks, rows=rows)
        expected = -np.maximum(-rows * masks[0], 0) * masks[1]
        tolerance = ROUNDING[dtype]
        np.testing.assert_allclose(scores, expected, rtol=tolerance, atol=tolerance)
        assert outputs["howsure_noise_shape_1"].tolist() == [7, 6]
    assert sites == [
        NoiseSite("howsure_noise_0", "keep", 0.25, "howsure_noise_shape_0"),
        NoiseSite("howsure_noise_1", "keep", 0.5, "howsure_noise_shape_1"),
    ]
    np.testing.assert_array_equal(fed(model, rows=rows)[0], run_session(model, {"x": rows})["y"])


def test_a_ratio_may_be_an_initializer_behind_a_cast():
    nodes = steps("ratio = Cast<to=1>(half); y = Dropout(x, ratio)")
    model = model_of(*nodes, initializers=[constant("half", 0.4, np.float64)])
    assert [site.rate for site in DROPOUT(load(model), "y")] == [0.4]


def test_a_type_that_only_onnx_runtime_knows_is_taken_over():
    """Trilu keeps all here; ONNX has no rule for the types of another domain."""
    model = model_of(
        *steps("u = Unsqueeze(x, first); t = com.microsoft.Trilu<upper=0>(u, k)"),
        *steps("s = Squeeze(t, first)"),
        *dropout("s", "y", 0.5),
        dtype=np.float64,
        initializers=[constant("first", [0], np.int64), constant("k", 100, np.int64)],
        opset_imports=[helper.make_opsetid("com.microsoft", 1)],
    )
    rows = ROWS.astype(np.float64)
    np.testing.assert_array_equal(fed(model, MASKS[0], rows=rows)[0], rows * MASKS[0])


@pytest.mark.parametrize("opset", [11, 13, 22])
def test_a_mask_in_use_says_what_is_kept(opset):
    nodes = dropout("x", "d", 0.5, opset=opset, outputs=2)
    model = model_of(*nodes, *steps("kept = Cast<to=1>(d_mask); y = Add(d, kept)"), opset=opset)
    np.testing.assert_array_equal(fed(model)[0], run_session(model, {"x": ROWS})["y"])
    mask = ONE_ROW[0]
    np.testing.assert_array_equal(fed(model, mask)[0], ROWS * mask + (mask > 0))


def test_no_dropout_is_left_before_the_scores_and_other_nodes_stay():
    loaded = load(two_dropouts())
    loaded.graph.node.extend(dropout("h", "aside", 0.5))
    loaded.graph.output.append(value("aside", ("N", 6)))
    assert len(DROPOUT(loaded, "y")) == 2
    remaining = [step.output[0] for step in loaded.graph.node if step.op_type == "Dropout"]
    assert remaining == ["aside"]
    noise = steps("r = RandomNormalLike(x); n = Add(x, r)")
    loaded = load(model_of(*noise, *dropout("n", "y", 0.5)))
    assert len(expose_random(loaded, "y")) == 1
    assert "Dropout" in {step.op_type for step in loaded.graph.node}


def test_nodes_inside_functions_are_found_wherever_they_are_called():
    imports = [helper.make_opsetid("", 17)]
    inner = helper.make_function("own", "Drop", ["a"], ["o"], dropout("a", "o", 0.3), imports)
    outer = steps("howsure_n1 = Relu(a); o = own.Drop(howsure_n1)")
    call, options = function_call(outer, "x", "d", functions=[inner])
    scores, _, sites = fed(model_of(*call, *steps("y = own.Drop(d)"), **options), *ONE_ROW)
    assert [site.rate for site in sites] == [0.3, 0.3]
    expected = np.maximum(ROWS, 0) * ONE_ROW[0] * ONE_ROW[1]
    np.testing.assert_allclose(scores, expected, rtol=1e-6)
    call, options = function_call(steps("r = RandomNormalLike(a); o = Add(a, r)"), "x", "y")
    model = model_of(*call, **options)
    assert has_random(load(model), "y")
    np.testing.assert_array_equal(fed(model, expose=expose_random)[0], ROWS)


WIDE = {"w": (900, 300), "b": (300,)}


@pytest.mark.parametrize("opset", [11, 17, 23])
def test_wide_layers_keep_every_bit(opset):
    """ONNX Runtime joins MatMul and Add where it knows the rank, and sums in another order then."""
    weights = [constant(name, RNG.normal(size=size)) for name, size in WIDE.items()]
    nodes = [*dropout("x", "d", 0.5, opset=opset), *steps("z = MatMul(d, w); y = Add(z, b)")]
    sizes = {"width": 900, "n_classes": 300}
    model = model_of(*nodes, initializers=weights, opset=opset, **sizes)
    rows = RNG.normal(size=(65, 900)).astype(np.float32)
    scores = fed(model, rows=rows, n_classes=300)[0]
    np.testing.assert_array_equal(scores, run_session(model, {"x": rows})["y"])


EXPORTS = [("hidden_dropout_cnn_dynamo", "digits_passes", 10), ("sequence_dropout", "sequences", 3)]


@pytest.mark.parametrize(("name", "inputs", "n_classes"), EXPORTS)
def test_torch_exports_keep_every_bit(name, inputs, n_classes):
    with np.load(PASSES / f"{inputs}.npz") as arrays:
        rows = arrays["evaluation_inputs"][:16]
    data = (PASSES / f"{name}.onnx").read_bytes()
    options = {"input": "inputs", "tensor": "logits", "n_classes": n_classes}
    # Sequences are of any length.
    for part in (rows, rows[:, :5]) if inputs == "sequences" else (rows,):
        scores = fed(data, rows=part, **options)[0]
        np.testing.assert_array_equal(scores, run_session(data, {"inputs": part})["logits"])


CHANCES = constant("chances", [[0, 0.1, 0.5, 0.500001, 0.9, 1]], np.float64)
LEAST, MOST = np.zeros((1, 6), np.float32), np.full((1, 6), 1 - 2**-24, np.float32)
DRAWN = RNG.normal(size=(1, 6)).astype(np.float32)
SHARES = np.array([[0, 0.25, 0.5, 0.75, 0.875, 0.125]], dtype=np.float32)
CAST = "r = Cast<to=1>(drawn)"
UNIFORM = (SHARES, 4 * SHARES - 1, 1)
# Nodes that draw r, the noise that is fed, what r is then, and what it is without noise.
DRAWS = {
    "normal, like": (
        "r = RandomNormalLike<mean=0.5, scale=2.0, seed=1.0>(x)",
        *(DRAWN, 0.5 + 2 * DRAWN, 0.5),
    ),
    "normal": ("r = RandomNormal<shape=[1, 6], scale=0.5>()", DRAWN, DRAWN / 2, 0),
    "uniform, like": ("r = RandomUniformLike<low=-1.0, high=3.0>(x)", *UNIFORM),
    "uniform": ("r = RandomUniform<shape=[1, 6], low=-1.0, high=3.0>()", *UNIFORM),
    "bernoulli, least": (
        f"drawn = Bernoulli(chances); {CAST}",
        *(LEAST, [0, 1, 1, 1, 1, 1], [0, 0, 0, 1, 1, 1]),
    ),
    "bernoulli of integers, most": (
        f"drawn = Bernoulli<dtype={TensorProto.INT64}>(chances); {CAST}",
        *(MOST, [0, 0, 0, 0, 0, 1], [0, 0, 0, 1, 1, 1]),
    ),
}


@pytest.mark.parametrize("opset", opsets(11, 15, 17, 21, 22, 26))
@pytest.mark.parametrize("draw", DRAWS)
def test_noise_is_fed_for_one_row_and_used_for_all(draw, opset):
    text, noise, drawn, still = DRAWS[draw]
    if opset < 15 and draw.startswith("bernoulli"):  # there was none
        return
    model = model_of(*steps(f"{text}; y = Add(x, r)"), initializers=[CHANCES], opset=opset)
    scores, outputs, (site,) = fed(model, noise, expose=expose_random)
    assert site.kind == ("normal" if draw.startswith("normal") else "uniform")
    assert site.depends_on_rows == draw.endswith("like")
    assert outputs["howsure_noise_shape_0"].tolist() == [7 if site.depends_on_rows else 1, 6]
    np.testing.assert_allclose(scores, ROWS + drawn, atol=1e-6)
    np.testing.assert_allclose(fed(model, expose=expose_random)[0], ROWS + still, atol=1e-6)


@pytest.mark.parametrize("opset", opsets(11, 14, 17, 22))
@pytest.mark.parametrize("dtype", ["", f"<dtype={TensorProto.DOUBLE}>"])
def test_draws_have_the_named_type_or_that_of_the_input(opset, dtype):
    nodes = steps(f"r = RandomNormalLike{dtype}(x); y = Add(x, r)")
    model, rows = model_of(*nodes, dtype=np.float64, opset=opset), ROWS.astype(np.float64)
    scores = fed(model, DRAWN, rows=rows, expose=expose_random)[0]
    np.testing.assert_array_equal(scores, rows + DRAWN)


def test_a_scalar_draw_stays_one():
    """A Squeeze of one axis more would fail."""
    scalar = node("RandomNormal", [], ["s"])
    scalar.attribute.append(helper.make_attribute("shape", [], attr_type=AttributeProto.INTS))
    nodes = [scalar, *steps("r = Unsqueeze(s, axes); y = Add(x, r)")]
    model = model_of(*nodes, initializers=[constant("axes", [0, 1], np.int64)])
    for number in (0.0, 2.5):
        noise = np.array(number, np.float32)
        scores, outputs, _ = fed(model, noise, expose=expose_random)
        np.testing.assert_array_equal(scores, ROWS + noise)
    assert outputs["howsure_noise_shape_0"].tolist() == []


NO_RATIO = model_of(*dropout("x", "d", 0.0), *dropout("d", "y", 0.0))
COMPUTED = model_of(*steps("ratio = ReduceMax<keepdims=0>(x); y = Dropout(x, ratio)"))
TWO_RATIOS = steps("two = Constant<value=float[2] {0.1, 0.1}>(); y = Dropout(x, two)")
PLAIN = steps("y = Identity(x)")


def of_ratio(ratio, opset):
    return model_of(*dropout("x", "y", ratio, opset=opset), opset=opset)


def after_the_scores(*nodes):
    model = model_of(*PLAIN)
    model.graph.node.extend(nodes)
    model.graph.output.append(value("after", ("N", 6)))
    return model


def of_another_opset():
    call, options = function_call(dropout("a", "o", 0.3), "x", "y", opset=16)
    return model_of(*call, **options)


CONFIG, MODEL = (InvalidConfig, "config.measures"), (InvalidOnnxModel, "model")
NOISE = model_of(*steps("u = RandomUniformLike(x); y = Add(x, u)"))
NO_DROPOUT = "^(?!.*ensemble_variance).*last_layer_dropout_variance"
MULTINOMIAL = steps("i = Multinomial<sample_size=6>(x); y = Cast<to=1>(i)")
RANDOM_AFTER = steps("after = RandomNormalLike(y)")
REFUSED = {
    "no dropout": (model_of(*PLAIN), 0.1, CONFIG, NO_DROPOUT),
    "another random operator": (NOISE, None, CONFIG, "ensemble_variance"),
    "after the scores": (after_the_scores(*dropout("y", "after", 0.5)), None, CONFIG, "no Dropout"),
    "dropout of nothing": (model_of(*steps("n = Dropout()"), *PLAIN), None, CONFIG, "no Dropout"),
    "ratios of nothing": (NO_RATIO, None, CONFIG, "dropout.rate"),
    "computed ratio": (COMPUTED, None, MODEL, "'y'.*dropout.rate"),
    **{
        f"ratio of {ratio}, opset {opset}": (of_ratio(ratio, opset), None, MODEL, "below 1")
        for ratio in (1.0, float("nan"))
        for opset in (11, 17)
    },
    "two ratios": (model_of(*TWO_RATIOS), None, MODEL, "below 1"),
    "in a branch": (model_of(*branched(dropout("x", "a", 0.5), "x", "y")), 0.1, MODEL, "If"),
    "function of another opset": (of_another_opset(), None, MODEL, "functions"),
    # Random operators.
    "multinomial": (model_of(*MULTINOMIAL), "random", MODEL, "Multinomial"),
    "random in a branch": (
        model_of(*branched(steps("a = RandomNormalLike(x)"), "x", "y")),
        *("random", MODEL, "inside of If"),
    ),
    "no shape": (model_of(*steps("y = RandomNormal()")), "random", MODEL, "no shape"),
    "nothing random": (of_ratio(0.5, 17), "random", CONFIG, "'model' parts"),
    "random after it": (after_the_scores(*RANDOM_AFTER), "random", CONFIG, "'model' parts"),
}


@pytest.mark.parametrize(("model", "rate", "error", "named"), REFUSED.values(), ids=REFUSED)
def test_a_model_that_cannot_be_fed_is_told_why(model, rate, error, named):
    kind, location = error
    expose = expose_random if rate == "random" else partial(expose_dropout, rate=rate)
    with pytest.raises(kind, match=named) as caught:
        expose(load(model), "y")
    (violation,) = caught.value.violations
    assert violation.location == location
    if rate == "random":
        assert has_random(load(model), "y") == (kind is InvalidOnnxModel)


@pytest.mark.parametrize(("model", "n_sites"), [(NO_RATIO, 2), (COMPUTED, 1)])
def test_a_rate_takes_the_place_of_a_ratio_that_is_missing(model, n_sites):
    sites = expose_dropout(load(model), "y", rate=0.2)
    assert [site.rate for site in sites] == [0.2] * n_sites

"""Dropout as products with masks that are fed, and models whose nodes cannot be fed."""

from pathlib import Path

import numpy as np
import pytest
from graph_models import (
    N_CLASSES,
    N_HIDDEN,
    N_INPUTS,
    ROWS,
    branched,
    constant,
    dropout,
    function_call,
    load,
    logits_choice,
    make_model,
    network,
    network_logits,
    opsets,
    run_exposed,
    run_session,
    steps,
    value,
)
from onnx import TensorProto, helper

from service.errors import InvalidConfig, InvalidOnnxModel
from service.graph.description import NoiseSite
from service.graph.noise.dropout import expose_dropout

PASSES = Path(__file__).parents[2] / "data" / "passes"
_rng = np.random.default_rng(3)
MASKS = [
    (_rng.random((7, N_HIDDEN)) > 0.4).astype(np.float32) * np.float32(scale)
    for scale in (4 / 3, 2)
]
ONE_ROW = [mask[:1] for mask in MASKS]


def two_dropouts(*, opset=17, **others):
    first = dropout("h0", "d0", 0.25, opset=opset, training=True)
    return network(first, dropout("h1", "d1", None, opset=opset), opset=opset, **others)


def exposed(model, *noise, tensor="y", **options):
    def expose(loaded):
        return expose_dropout(loaded, tensor, rate=None)

    return run_exposed(expose, model, noise, **options)


def scores(model, *noise, **options):
    return exposed(model, *noise, **options)[0]["scores"]


@pytest.mark.parametrize("opset", opsets(*range(11, 27)))
@pytest.mark.parametrize("masks", [MASKS, ONE_ROW], ids=["7 rows", "1 row"])
def test_masks_multiply_activations_and_ones_change_no_bit(opset, masks):
    model = two_dropouts(opset=opset)
    outputs, sites = exposed(model, *masks)
    assert sites == [
        NoiseSite("howsure_noise_0", "keep", 0.25, "howsure_noise_shape_0"),
        NoiseSite("howsure_noise_1", "keep", 0.5, "howsure_noise_shape_1"),
    ]
    expected = network_logits(ROWS, *masks)
    np.testing.assert_allclose(outputs["scores"], expected, rtol=1e-4, atol=1e-5)
    assert [outputs[f"noise_shape_{k}"].tolist() for k in (0, 1)] == [[7, N_HIDDEN]] * 2
    np.testing.assert_array_equal(scores(model), run_session(model, {"x": ROWS})["y"])


def test_a_ratio_may_be_an_initializer_behind_a_cast():
    nodes = steps("ratio = Cast<to=1>(half); d0 = Dropout(h0, ratio)")
    model = network(nodes, initializers=[constant("half", 0.4, np.float64)])
    assert [site.rate for site in expose_dropout(load(model), "y", rate=None)] == [0.4]


@pytest.mark.parametrize("opset", opsets(11, 12, 14, 15, 22, 26))
# Without a kernel of its own float16 runs as float32, rounded where nodes meet.
@pytest.mark.parametrize(
    ("dtype", "tolerance", "rounding"), [(np.float16, 3e-2, 1e-2), (np.float64, 1e-6, 0.0)]
)
def test_masks_take_the_type_of_the_data(opset, dtype, tolerance, rounding):
    kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    model = two_dropouts(opset=opset, dtype=dtype, element_type=kind)
    choice = logits_choice(precision="float64" if dtype == np.float64 else "float32")
    options = {"feeds": {"x": ROWS.astype(dtype)}, "choice": choice}
    expected = network_logits(ROWS.astype(dtype), *ONE_ROW)
    dropped = scores(model, *ONE_ROW, **options)
    np.testing.assert_allclose(dropped, expected, rtol=tolerance, atol=tolerance)
    own = run_session(model, options["feeds"])["y"]
    np.testing.assert_allclose(scores(model, **options), own, rtol=rounding, atol=rounding)


def test_a_type_that_only_onnx_runtime_knows_is_taken_over():
    """Trilu keeps all here; ONNX has no rule for the types of another domain."""
    trilu = steps(
        "u0 = Unsqueeze(h0, first); t0 = com.microsoft.Trilu<upper=0>(u0, k);"
        "s0 = Squeeze(t0, first)"
    )
    model = network(
        [*trilu, *dropout("s0", "d0", 0.5)],
        dtype=np.float64,
        element_type=TensorProto.DOUBLE,
        initializers=[constant("first", [0], np.int64), constant("k", 100, np.int64)],
        opset_imports=[helper.make_opsetid("com.microsoft", 1)],
    )
    rows = ROWS.astype(np.float64)
    options = {"feeds": {"x": rows}, "choice": logits_choice(precision="float64")}
    dropped = scores(model, ONE_ROW[0], **options)
    np.testing.assert_allclose(dropped, network_logits(rows, ONE_ROW[0]), rtol=1e-6)


@pytest.mark.parametrize("opset", [11, 13, 22])
def test_a_mask_in_use_says_what_is_kept(opset):
    nodes = dropout("x", "d", 0.5, opset=opset, outputs=2)
    nodes += steps("kept = Cast<to=1>(d_mask); y = Add(d, kept)")
    ends = {"inputs": [value("x", ("N", 5))], "outputs": [value("y", ("N", 5))]}
    model = make_model(nodes, opset=opset, **ends)
    feeds = {"x": ROWS[:, :5]}
    np.testing.assert_array_equal(scores(model, feeds=feeds), run_session(model, feeds)["y"])
    mask = np.array([[2, 0, 2, 0, 2]], dtype=np.float32)
    dropped = scores(model, mask, feeds=feeds)
    np.testing.assert_array_equal(dropped, feeds["x"] * mask + (mask > 0))


def test_no_dropout_is_left_before_the_scores():
    loaded = load(two_dropouts())
    loaded.graph.node.extend(dropout("h0", "aside", 0.5))
    loaded.graph.output.append(value("aside", ("N", N_HIDDEN)))
    assert len(expose_dropout(loaded, "y", rate=None)) == 2
    nodes = [step.output[0] for step in loaded.graph.node if step.op_type == "Dropout"]
    assert nodes == ["aside"]


def test_dropout_inside_functions_is_found_wherever_it_is_called():
    imports = [helper.make_opsetid("", 17)]
    inner = helper.make_function("own", "Drop", ["a"], ["o"], dropout("a", "o", 0.3), imports)
    outer = steps("howsure_n1 = Relu(a); o = own.Drop(howsure_n1)")
    call, options = function_call(outer, "h0", "d0", functions=[inner])
    outputs, sites = exposed(network(call, steps("d1 = own.Drop(h1)"), **options), *ONE_ROW)
    assert [site.rate for site in sites] == [0.3, 0.3]
    expected = network_logits(ROWS, *ONE_ROW)
    np.testing.assert_allclose(outputs["scores"], expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("opset", [11, 17, 23])
def test_wide_layers_keep_every_bit(opset):
    """ONNX Runtime joins MatMul and Add where it knows the rank, and sums in another order then."""
    rng = np.random.default_rng(4)
    weights = {"w": rng.normal(size=(900, 300)), "b": rng.normal(size=300)}
    model = make_model(
        [*dropout("x", "d", 0.5, opset=opset), *steps("z = MatMul(d, w); y = Add(z, b)")],
        inputs=[value("x", ("N", 900))],
        outputs=[value("y", ("N", 300))],
        initializers=[constant(name, array) for name, array in weights.items()],
        opset=opset,
    )
    feeds = {"x": rng.normal(size=(65, 900)).astype(np.float32)}
    dropped = scores(model, feeds=feeds, choice=logits_choice(300))
    np.testing.assert_array_equal(dropped, run_session(model, feeds)["y"])


EXPORTS = [
    *("hidden_dropout_cnn", "hidden_dropout_cnn_dynamo", "last_layer_dropout_cnn"),
    *("squeezenet_like", "sequence_dropout"),
]


@pytest.mark.parametrize("name", EXPORTS)
def test_torch_exports_keep_every_bit(name):
    """Sequences are of any length."""
    is_sequence = name == "sequence_dropout"
    with np.load(PASSES / ("sequences.npz" if is_sequence else "digits_passes.npz")) as arrays:
        inputs = arrays["evaluation_inputs"][:64]
    data = (PASSES / f"{name}.onnx").read_bytes()
    for rows in (inputs[:16], inputs[:16, :5]) if is_sequence else (inputs,):
        feeds = {"inputs": rows}
        choice = logits_choice(3 if is_sequence else 10, "logits")
        outputs, sites = exposed(data, tensor="logits", feeds=feeds, choice=choice)
        np.testing.assert_array_equal(outputs["scores"], run_session(data, feeds)["logits"])
        if is_sequence:
            assert outputs["noise_shape_0"].tolist() == [16, rows.shape[1], 16]
            assert [site.rate for site in sites] == [0.1, 0.2]


NOISE = steps("u0 = RandomUniformLike(h0); d0 = Add(h0, u0)")
NO_RATIO = network(dropout("h0", "d0", 0.0), dropout("h1", "d1", 0.0))
COMPUTED_RATIO = network(steps("ratio = ReduceMax<keepdims=0>(x); d0 = Dropout(h0, ratio)"))
TWO_RATIOS = steps("two = Constant<value=float[2] {0.1, 0.1}>(); d0 = Dropout(h0, two)")
OF_NOTHING = make_model(
    steps("n = Dropout(); y = Identity(x)"), inputs=[value("x", ("N", N_INPUTS))]
)


def of_ratio(ratio, opset):
    return network(dropout("h0", "d0", ratio, opset=opset), opset=opset)


def after_the_scores():
    model = network()
    model.graph.node.extend(dropout("y", "after", 0.5))
    model.graph.output.append(value("after", ("N", N_CLASSES)))
    return model


def of_another_opset():
    call, options = function_call(dropout("a", "o", 0.3), "h0", "d0", opset=16)
    return network(call, **options)


CONFIG, MODEL = (InvalidConfig, "config.measures"), (InvalidOnnxModel, "model")
IN_A_BRANCH = network(branched(dropout("h0", "a", 0.5), "h0", "d0"))
REFUSED = {
    "no dropout": (network(), 0.1, CONFIG, "^(?!.*ensemble_variance).*last_layer_dropout_variance"),
    "another random operator": (network(NOISE), None, CONFIG, "ensemble_variance"),
    "dropout after the scores": (after_the_scores(), None, CONFIG, "no Dropout node"),
    "dropout of nothing": (OF_NOTHING, None, CONFIG, "no Dropout node"),
    "ratios of nothing": (NO_RATIO, None, CONFIG, "dropout.rate"),
    "computed ratio": (COMPUTED_RATIO, None, MODEL, "'d0'.*dropout.rate"),
    "ratio of one, opset 11": (of_ratio(1.0, 11), None, MODEL, "below 1"),
    "ratio of one": (of_ratio(1.0, 17), None, MODEL, "below 1"),
    "ratio of NaN, opset 11": (of_ratio(float("nan"), 11), None, MODEL, "below 1"),
    "ratio of NaN": (of_ratio(float("nan"), 17), None, MODEL, "below 1"),
    "two ratios": (network(TWO_RATIOS), None, MODEL, "below 1"),
    "in a branch": (IN_A_BRANCH, 0.1, MODEL, "inside of If"),
    "function of another opset": (of_another_opset(), None, MODEL, "functions"),
}


@pytest.mark.parametrize(("model", "rate", "error", "named"), REFUSED.values(), ids=REFUSED)
def test_a_model_that_cannot_be_fed_is_told_why(model, rate, error, named):
    kind, location = error
    with pytest.raises(kind, match=named) as caught:
        expose_dropout(load(model), "y", rate=rate)
    (violation,) = caught.value.violations
    assert violation.location == location


@pytest.mark.parametrize(("model", "n_sites"), [(NO_RATIO, 2), (COMPUTED_RATIO, 1)])
def test_a_rate_takes_the_place_of_a_ratio_that_is_missing(model, n_sites):
    sites = expose_dropout(load(model), "y", rate=0.2)
    assert [site.rate for site in sites] == [0.2] * n_sites

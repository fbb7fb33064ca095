"""Dropout as products with masks that are fed."""

from pathlib import Path

import numpy as np
import pytest
from graph_models import (
    N_HIDDEN,
    ROWS,
    constant,
    dropout,
    function_call,
    load,
    logits_choice,
    make_model,
    network,
    network_logits,
    node,
    opsets,
    run_exposed,
    run_session,
    value,
)
from onnx import TensorProto, helper

from service.graph.description import NoiseSite
from service.graph.noise.dropout import expose_dropout

PASSES = Path(__file__).parents[2] / "data" / "passes"


def two_dropouts(*ratios, opset=17, **others):
    first, second = ratios or (0.25, None)
    return network(
        dropout("h0", "d0", first, opset=opset, training=True),
        dropout("h1", "d1", second, opset=opset),
        opset=opset,
        **others,
    )


def masks(rows=1):
    rng = np.random.default_rng(3)
    return [
        (rng.random((rows, N_HIDDEN)) > 0.4).astype(np.float32) * np.float32(scale)
        for scale in (4 / 3, 2)
    ]


def exposed(model, *noise, tensor="y", **options):
    def expose(loaded):
        return expose_dropout(loaded, tensor, rate=None)

    return run_exposed(expose, model, noise, **options)


@pytest.mark.parametrize("opset", opsets(*range(11, 27)))
@pytest.mark.parametrize("rows", [1, 7])
def test_masks_multiply_activations_and_ones_change_no_bit(opset, rows):
    model = two_dropouts(opset=opset)
    found, sites = exposed(model, *masks(rows))
    assert sites == [
        NoiseSite("howsure_noise_0", "keep", 0.25, "howsure_noise_shape_0"),
        NoiseSite("howsure_noise_1", "keep", 0.5, "howsure_noise_shape_1"),
    ]
    expected = network_logits(ROWS, *masks(rows))
    np.testing.assert_allclose(found["scores"], expected, rtol=1e-4, atol=1e-5)
    assert found["noise_shape_0"].tolist() == found["noise_shape_1"].tolist() == [7, N_HIDDEN]
    np.testing.assert_array_equal(exposed(model)[0]["scores"], run_session(model, {"x": ROWS})["y"])


def test_a_ratio_may_be_an_initializer_behind_a_cast():
    model = network(
        [
            node("Cast", ["half"], ["ratio"], to=TensorProto.FLOAT),
            node("Dropout", ["h0", "ratio"], ["d0"]),
        ],
        initializers=[constant("half", 0.4, np.float64)],
    )
    assert [site.rate for site in expose_dropout(load(model), "y", rate=None)] == [0.4]


@pytest.mark.parametrize("opset", opsets(11, 12, 14, 15, 22, 26))
# Without a kernel of its own float16 runs as float32, rounded where nodes meet.
@pytest.mark.parametrize(
    ("dtype", "tolerance", "rounding"), [(np.float16, 3e-2, 1e-2), (np.float64, 1e-6, 0.0)]
)
def test_masks_take_the_type_of_the_data(opset, dtype, tolerance, rounding):
    kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    model = two_dropouts(opset=opset, dtype=dtype, element_type=kind)
    feeds = {"x": ROWS.astype(dtype)}
    choice = logits_choice(precision="float64" if dtype == np.float64 else "float32")
    dropped = exposed(model, *masks(), feeds=feeds, choice=choice)[0]["scores"]
    expected = network_logits(feeds["x"], *masks())
    np.testing.assert_allclose(dropped, expected, rtol=tolerance, atol=tolerance)
    still = exposed(model, feeds=feeds, choice=choice)[0]["scores"]
    own = run_session(model, feeds)["y"]
    np.testing.assert_allclose(still, own, rtol=rounding, atol=rounding)


def test_a_type_that_only_onnx_runtime_knows_is_taken_over():
    """Trilu keeps all here; ONNX has no rule for the types of another domain."""
    model = network(
        [
            node("Unsqueeze", ["h0", "first"], ["u0"]),
            node("Trilu", ["u0", "k"], ["t0"], domain="com.microsoft", upper=0),
            node("Squeeze", ["t0", "first"], ["s0"]),
            *dropout("s0", "d0", 0.5),
        ],
        dtype=np.float64,
        element_type=TensorProto.DOUBLE,
        initializers=[constant("first", [0], np.int64), constant("k", 100, np.int64)],
        opset_imports=[helper.make_opsetid("com.microsoft", 1)],
    )
    feeds, mask = {"x": ROWS.astype(np.float64)}, masks()[0]
    found, _ = exposed(model, mask, feeds=feeds, choice=logits_choice(precision="float64"))
    np.testing.assert_allclose(found["scores"], network_logits(feeds["x"], mask), rtol=1e-6)


@pytest.mark.parametrize("opset", [11, 13, 22])
def test_a_mask_in_use_says_what_is_kept(opset):
    model = make_model(
        [
            *dropout("x", "d", 0.5, opset=opset, outputs=2),
            node("Cast", ["d_mask"], ["kept"], to=TensorProto.FLOAT),
            node("Add", ["d", "kept"], ["y"]),
        ],
        inputs=[value("x", ("N", 5))],
        outputs=[value("y", ("N", 5))],
        opset=opset,
    )
    rows = ROWS[:, :5]
    still, _ = exposed(model, feeds={"x": rows})
    np.testing.assert_array_equal(still["scores"], run_session(model, {"x": rows})["y"])
    mask = np.array([[2, 0, 2, 0, 2]], dtype=np.float32)
    found, _ = exposed(model, mask, feeds={"x": rows})
    np.testing.assert_array_equal(found["scores"], rows * mask + (mask > 0))


def test_no_dropout_is_left_before_the_scores():
    loaded = load(two_dropouts())
    loaded.graph.node.extend(dropout("h0", "aside", 0.5))
    loaded.graph.output.append(value("aside", ("N", N_HIDDEN)))
    assert len(expose_dropout(loaded, "y", rate=None)) == 2
    left = [step.output[0] for step in loaded.graph.node if step.op_type == "Dropout"]
    assert left == ["aside"]


def test_dropout_inside_functions_is_found_wherever_it_is_called():
    imports = [helper.make_opsetid("", 17)]
    inner = helper.make_function("own", "Drop", ["a"], ["o"], dropout("a", "o", 0.3), imports)
    outer = [node("Relu", ["a"], ["howsure_n1"]), node("Drop", ["howsure_n1"], ["o"], domain="own")]
    call, options = function_call(outer, "h0", "d0", functions=[inner])
    model = network(call, [node("Drop", ["h1"], ["d1"], domain="own")], **options)
    found, sites = exposed(model, *masks())
    assert [site.rate for site in sites] == [0.3, 0.3]
    np.testing.assert_allclose(
        found["scores"], network_logits(ROWS, *masks()), rtol=1e-4, atol=1e-5
    )


@pytest.mark.parametrize("opset", [11, 17, 23])
def test_wide_layers_keep_every_bit(opset):
    """ONNX Runtime joins MatMul and Add where it knows the rank, and sums in another order then."""
    rng = np.random.default_rng(4)
    model = make_model(
        [
            node("Relu", ["x"], ["h"]),
            *dropout("h", "d", 0.5, opset=opset),
            node("MatMul", ["d", "w"], ["z"]),
            node("Add", ["z", "b"], ["y"]),
        ],
        inputs=[value("x", ("N", 900))],
        outputs=[value("y", ("N", 300))],
        initializers=[
            constant("w", rng.normal(size=(900, 300))),
            constant("b", rng.normal(size=300)),
        ],
        opset=opset,
    )
    feeds = {"x": rng.normal(size=(65, 900)).astype(np.float32)}
    found, _ = exposed(model, feeds=feeds, choice=logits_choice(300))
    np.testing.assert_array_equal(found["scores"], run_session(model, feeds)["y"])


def assert_export_keeps_every_bit(name, inputs, n_classes):
    data = (PASSES / f"{name}.onnx").read_bytes()
    found, sites = exposed(
        data,
        tensor="logits",
        feeds={"inputs": inputs},
        choice=logits_choice(n_classes, "logits"),
    )
    expected = run_session(data, {"inputs": inputs})["logits"]
    np.testing.assert_array_equal(found["scores"], expected)
    return found, sites


@pytest.mark.parametrize(
    "name",
    [
        "hidden_dropout_cnn",
        "hidden_dropout_cnn_dynamo",
        "last_layer_dropout_cnn",
        "squeezenet_like",
    ],
)
def test_torch_exports_keep_every_bit(name):
    with np.load(PASSES / "digits_passes.npz") as arrays:
        assert_export_keeps_every_bit(name, arrays["evaluation_inputs"][:64], 10)


@pytest.mark.parametrize("length", [12, 5])
def test_a_sequence_of_any_length_keeps_every_bit(length):
    with np.load(PASSES / "sequences.npz") as arrays:
        tokens = arrays["evaluation_inputs"][:16, :length]
    found, sites = assert_export_keeps_every_bit("sequence_dropout", tokens, 3)
    assert found["noise_shape_0"].tolist() == [16, length, 16]
    assert [site.rate for site in sites] == [0.1, 0.2]

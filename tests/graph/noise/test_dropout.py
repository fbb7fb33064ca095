"""Dropout as products with masks that are fed."""

import numpy as np
import pytest
from graph_models import constant, make_model, node, opsets, run_session, value
from graph_noise import (
    N_HIDDEN,
    ROWS,
    dropout,
    load,
    logits_choice,
    network,
    network_logits,
    quiet,
    run_sites,
)
from onnx import TensorProto, helper

from service.graph.description import NoiseSite
from service.graph.noise.dropout import expose_dropout


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


def test_sites_name_their_input_their_rate_and_where_their_shape_is_given():
    sites = expose_dropout(load(two_dropouts()), "y", rate=None)
    assert sites == [
        NoiseSite("howsure_noise_0", "keep", 0.25, "howsure_noise_shape_0"),
        NoiseSite("howsure_noise_1", "keep", 0.5, "howsure_noise_shape_1"),
    ]
    assert [site.quiet for site in sites] == [1, 1]


@pytest.mark.parametrize("opset", opsets(*range(11, 27)))
def test_ones_give_onnx_runtimes_own_answer_to_the_last_bit(opset):
    model = two_dropouts(opset=opset)
    own = run_session(model, {"x": ROWS})["y"]
    loaded = load(model)
    sites = expose_dropout(loaded, "y", rate=None)
    got = run_sites(loaded, sites, {"x": ROWS} | quiet(sites))
    np.testing.assert_array_equal(got["scores"], own)
    assert got["noise_shape_0"].tolist() == got["noise_shape_1"].tolist() == [7, N_HIDDEN]


@pytest.mark.parametrize("opset", opsets(*range(11, 27)))
@pytest.mark.parametrize("rows", [1, 7])
def test_masks_multiply_what_was_dropped_from(opset, rows):
    loaded = load(two_dropouts(opset=opset))
    sites = expose_dropout(loaded, "y", rate=None)
    first, second = masks(rows)
    feeds = {"x": ROWS, sites[0].name: first, sites[1].name: second}
    got = run_sites(loaded, sites, feeds)["scores"]
    np.testing.assert_allclose(got, network_logits(ROWS, first, second), rtol=1e-4, atol=1e-5)


def test_a_rate_overrides_every_ratio():
    sites = expose_dropout(load(two_dropouts(0.25, 0.0)), "y", rate=0.125)
    assert [site.rate for site in sites] == [0.125, 0.125]


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
@pytest.mark.parametrize("dtype", [np.float16, np.float64])
def test_masks_take_the_type_of_the_data(opset, dtype):
    kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    model = two_dropouts(opset=opset, dtype=dtype, element_type=kind)
    rows = ROWS.astype(dtype)
    own = run_session(model, {"x": rows})["y"]
    precision = "float64" if dtype == np.float64 else "float32"
    choice = logits_choice(precision=precision)
    loaded = load(model)
    sites = expose_dropout(loaded, "y", rate=None)
    first, second = masks()
    feeds = {"x": rows, sites[0].name: first, sites[1].name: second}
    dropped = run_sites(loaded, sites, feeds, choice=choice)["scores"]
    tolerance = 1e-6 if dtype == np.float64 else 3e-2
    np.testing.assert_allclose(
        dropped, network_logits(rows, first, second), rtol=tolerance, atol=tolerance
    )
    loaded = load(model)
    sites = expose_dropout(loaded, "y", rate=None)
    got = run_sites(loaded, sites, {"x": rows} | quiet(sites), choice=choice)["scores"]
    if dtype == np.float64:
        np.testing.assert_array_equal(got, own)
    else:  # without a kernel of its own float16 runs as float32, rounded where nodes meet
        np.testing.assert_allclose(got, own, rtol=1e-2, atol=1e-2)


def test_a_type_that_only_onnx_runtime_knows_is_taken_over():
    """Trilu keeps all here; ONNX has no rule for the types of another domain."""
    kept = node("Trilu", ["h0"], ["t0"], domain="com.microsoft", upper=0)
    model = network(
        [node("Unsqueeze", ["h0", "first"], ["u0"]), kept, *dropout("s0", "d0", 0.5)],
        dtype=np.float64,
        element_type=TensorProto.DOUBLE,
        initializers=[constant("first", [0], np.int64), constant("k", 100, np.int64)],
        opset_imports=[helper.make_opsetid("com.microsoft", 1)],
    )
    kept.input[:] = ["u0", "k"]
    place = next(i for i, step in enumerate(model.graph.node) if step.op_type == "Trilu")
    model.graph.node[place].CopyFrom(kept)
    model.graph.node.insert(place + 1, node("Squeeze", ["t0", "first"], ["s0"]))
    rows = ROWS.astype(np.float64)
    loaded = load(model)
    sites = expose_dropout(loaded, "y", rate=None)
    first = masks()[0]
    got = run_sites(
        loaded, sites, {"x": rows, sites[0].name: first}, choice=logits_choice(precision="float64")
    )
    np.testing.assert_allclose(got["scores"], network_logits(rows, first), rtol=1e-6)


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
    loaded = load(model)
    sites = expose_dropout(loaded, "y", rate=None)
    np.testing.assert_array_equal(
        run_sites(loaded, sites, {"x": rows} | quiet(sites))["scores"],
        run_session(model, {"x": rows})["y"],
    )
    loaded = load(model)
    sites = expose_dropout(loaded, "y", rate=None)
    mask = np.array([[2, 0, 2, 0, 2]], dtype=np.float32)
    got = run_sites(loaded, sites, {"x": rows, sites[0].name: mask})["scores"]
    np.testing.assert_array_equal(got, rows * mask + (mask > 0))


def test_no_dropout_is_left_before_the_scores():
    loaded = load(two_dropouts())
    loaded.graph.node.extend(dropout("h0", "aside", 0.5))
    loaded.graph.output.append(value("aside", ("N", N_HIDDEN)))
    sites = expose_dropout(loaded, "y", rate=None)
    assert len(sites) == 2
    left = [step.output[0] for step in loaded.graph.node if step.op_type == "Dropout"]
    assert left == ["aside"]


def test_dropout_inside_functions_is_found_wherever_it_is_called():
    imports = [helper.make_opsetid("", 18), helper.make_opsetid("own", 1)]
    inner = helper.make_function("own", "Drop", ["a"], ["o"], dropout("a", "o", 0.3), imports)
    outer = helper.make_function(
        "own",
        "RectifyAndDrop",
        ["a"],
        ["o"],
        [node("Relu", ["a"], ["howsure_n1"]), node("Drop", ["howsure_n1"], ["o"], domain="own")],
        imports,
    )
    model = network(
        [node("RectifyAndDrop", ["h0"], ["d0"], domain="own")],
        [node("Drop", ["h1"], ["d1"], domain="own")],
        functions=[outer, inner],
        opset=18,
        opset_imports=[helper.make_opsetid("own", 1)],
    )
    loaded = load(model)
    sites = expose_dropout(loaded, "y", rate=None)
    assert [site.rate for site in sites] == [0.3, 0.3]
    first, second = masks()
    got = run_sites(loaded, sites, {"x": ROWS, sites[0].name: first, sites[1].name: second})
    np.testing.assert_allclose(
        got["scores"], network_logits(ROWS, first, second), rtol=1e-4, atol=1e-5
    )


def test_the_model_is_edited_in_place_and_its_weights_stay():
    loaded = load(two_dropouts())
    before = {tensor.name: tensor.raw_data for tensor in loaded.graph.initializer}
    sites = expose_dropout(loaded, "y", rate=None)
    assert [given.name for given in loaded.graph.input] == ["x", *(site.name for site in sites)]
    assert {tensor.name: tensor.raw_data for tensor in loaded.graph.initializer} == before

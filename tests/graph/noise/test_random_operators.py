"""Random operators as noise that is fed."""

import numpy as np
import pytest
from graph_models import (
    N_HIDDEN,
    ROWS,
    WEIGHTS,
    branched,
    constant,
    dropout,
    function_call,
    last_hidden,
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
from onnx import AttributeProto, TensorProto, helper

from service.errors import InvalidConfig, InvalidOnnxModel
from service.graph.description import NoiseSite
from service.graph.noise.random_operators import expose_random, has_random

OPSETS = (11, 15, 17, 21, 22, 26)
RNG = np.random.default_rng(6)


def exposed(model, *noise, **options):
    def expose(loaded):
        return expose_random(loaded, "y")

    return run_exposed(expose, model, noise, **options)


def drawing(*nodes, opset=17, **others):
    """Return a model that adds what the nodes draw as ``r`` to its input."""
    return make_model(
        [*nodes, node("Add", ["x", "r"], ["y"])],
        inputs=[value("x", ("N", 6))],
        outputs=[value("y", ("N", 6))],
        opset=opset,
        **others,
    )


@pytest.mark.parametrize("opset", opsets(*OPSETS))
def test_noise_on_activations_is_fed_for_one_row_and_used_for_all(opset):
    draw = [node("RandomNormalLike", ["h0"], ["r"], mean=0.5, scale=2.0, seed=1.0)]
    model = network([*draw, node("Mul", ["h0", "r"], ["d0"])], opset=opset)
    noise = RNG.normal(size=(1, N_HIDDEN)).astype(np.float32)
    got, sites = exposed(model, noise)
    assert sites == [NoiseSite("howsure_noise_0", "normal", 0.0, "howsure_noise_shape_0")]
    assert got["noise_shape_0"].tolist() == [7, N_HIDDEN]
    expected = network_logits(ROWS, 0.5 + 2 * noise.astype(np.float64))
    np.testing.assert_allclose(got["scores"], expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("opset", opsets(*OPSETS))
def test_noise_on_weights_is_that_of_their_shape(opset):
    """A Bayesian layer; without noise the weights are their mean."""
    shape = WEIGHTS[2].shape
    drawn = [
        node("RandomNormal", [], ["r"], shape=shape, scale=0.5),
        node("Add", ["w2", "r"], ["w"]),
    ]
    last = [*drawn, node("Identity", ["h1"], ["d1"])]
    model = network((), last, opset=opset)
    product = next(step for step in model.graph.node if "w2" in step.input and "d1" in step.input)
    product.input[1] = "w"
    still, sites = exposed(model)
    assert not sites[0].depends_on_rows
    assert still["noise_shape_0"].tolist() == list(shape)
    np.testing.assert_allclose(still["scores"], network_logits(ROWS), rtol=1e-4, atol=1e-5)
    noise = RNG.normal(size=shape).astype(np.float32)
    got, _ = exposed(model, noise)
    expected = network_logits(ROWS) + last_hidden(ROWS) @ (0.5 * noise.astype(np.float64))
    np.testing.assert_allclose(got["scores"], expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("opset", opsets(*OPSETS))
@pytest.mark.parametrize("like", [False, True])
def test_uniform_noise_fills_the_range(opset, like):
    bounds = {"low": -1.0, "high": 3.0}
    draw = (
        node("RandomUniformLike", ["x"], ["r"], **bounds)
        if like
        else node("RandomUniform", [], ["r"], shape=[1, 6], **bounds)
    )
    noise = np.array([[0, 0.25, 0.5, 0.75, 0.875, 0.125]], dtype=np.float32)
    got, sites = exposed(drawing(draw, opset=opset), noise)
    assert (sites[0].kind, sites[0].depends_on_rows) == ("uniform", like)
    np.testing.assert_allclose(got["scores"], ROWS + 4 * noise - 1, atol=1e-6)
    np.testing.assert_allclose(
        exposed(drawing(draw, opset=opset))[0]["scores"], ROWS + 1, atol=1e-6
    )


@pytest.mark.parametrize("opset", opsets(15, 17, 22, 26))
@pytest.mark.parametrize("dtype", [None, TensorProto.FLOAT, TensorProto.INT64])
def test_bernoulli_compares_chance_with_noise(opset, dtype):
    chances = np.array([[0, 0.1, 0.5, 0.500001, 0.9, 1]])
    attributes = {} if dtype is None else {"dtype": dtype}
    model = drawing(
        node("Bernoulli", ["chances"], ["drawn"], **attributes),
        node("Cast", ["drawn"], ["r"], to=TensorProto.FLOAT),
        initializers=[constant("chances", chances, np.float64)],
        opset=opset,
    )
    got, sites = exposed(model)
    assert sites[0].kind == "uniform"
    np.testing.assert_array_equal(got["scores"], ROWS + np.array([0, 0, 0, 1, 1, 1], np.float32))
    low = np.zeros((1, 6), dtype=np.float32)
    high = np.full((1, 6), 1 - 2**-24, dtype=np.float32)
    expected = np.array([0, 1, 1, 1, 1, 1], np.float32)
    np.testing.assert_array_equal(exposed(model, low)[0]["scores"], ROWS + expected)
    expected = np.array([0, 0, 0, 0, 0, 1], np.float32)
    np.testing.assert_array_equal(exposed(model, high)[0]["scores"], ROWS + expected)


@pytest.mark.parametrize("opset", opsets(11, 14, 17, 22))
@pytest.mark.parametrize("said", [False, True])
def test_draws_have_the_type_that_is_asked_for_or_that_of_the_input(opset, said):
    attributes = {"dtype": TensorProto.DOUBLE} if said else {}
    model = make_model(
        [node("RandomNormalLike", ["x"], ["r"], **attributes), node("Add", ["x", "r"], ["y"])],
        inputs=[value("x", ("N", 6), TensorProto.DOUBLE)],
        outputs=[value("y", ("N", 6), TensorProto.DOUBLE)],
        opset=opset,
    )
    rows = ROWS.astype(np.float64)
    noise = RNG.normal(size=(1, 6)).astype(np.float32)
    got, _ = exposed(model, noise, feeds={"x": rows}, choice=logits_choice(6, precision="float64"))
    np.testing.assert_array_equal(got["scores"], rows + noise)


def test_a_scalar_draw_stays_one():
    """A Squeeze of one axis more would fail."""
    scalar = node("RandomNormal", [], ["s"])
    scalar.attribute.append(helper.make_attribute("shape", [], attr_type=AttributeProto.INTS))
    model = drawing(
        scalar,
        node("Unsqueeze", ["s", "axes"], ["r"]),
        initializers=[constant("axes", [0, 1], np.int64)],
    )
    np.testing.assert_array_equal(exposed(model)[0]["scores"], ROWS)
    got, _ = exposed(model, np.array(2.5, dtype=np.float32))
    np.testing.assert_array_equal(got["scores"], ROWS + np.float32(2.5))
    assert got["noise_shape_0"].tolist() == []


def test_onnx_runtimes_own_draws_have_the_same_mean_and_spread():
    rows = np.zeros((20_000, 6), dtype=np.float32)
    model = drawing(node("RandomNormalLike", ["x"], ["r"], mean=3.0, scale=0.5, seed=2.0))
    own = run_session(model, {"x": rows})["y"]
    noise = RNG.normal(size=rows.shape).astype(np.float32)
    ours, _ = exposed(model, noise, feeds={"x": rows})
    assert abs(own.mean() - ours["scores"].mean()) < 0.01
    assert abs(own.std() - ours["scores"].std()) < 0.01


def test_dropout_stays_as_it_is():
    noise = [node("RandomNormalLike", ["h0"], ["r"]), node("Add", ["h0", "r"], ["d0"])]
    loaded = load(network(noise, dropout("h1", "d1", 0.5)))
    assert len(expose_random(loaded, "y")) == 1
    assert "Dropout" in {step.op_type for step in loaded.graph.node}


def test_random_operators_of_functions_are_found():
    body = [node("RandomNormalLike", ["a"], ["r"]), node("Add", ["a", "r"], ["o"])]
    call, options = function_call(body, "h0", "d0")
    model = network(call, **options)
    assert has_random(load(model), "y")
    got, sites = exposed(model)
    assert len(sites) == 1
    np.testing.assert_allclose(got["scores"], network_logits(ROWS), rtol=1e-4, atol=1e-5)


MULTINOMIAL = [
    node("Multinomial", ["h0"], ["i"], sample_size=8),
    node("Cast", ["i"], ["d0"], to=TensorProto.FLOAT),
]


@pytest.mark.parametrize(
    ("model", "said"),
    [
        (network(MULTINOMIAL), "Multinomial"),
        (network(branched([node("RandomNormalLike", ["h0"], ["a"])], "h0", "d0")), "inside of If"),
        (drawing(node("RandomNormal", [], ["r"])), "no shape"),
    ],
)
def test_what_cannot_be_fed_is_refused(model, said):
    assert has_random(load(model), "y")
    with pytest.raises(InvalidOnnxModel, match=said) as caught:
        expose_random(load(model), "y")
    assert caught.value.violations[0].location == "model"


@pytest.mark.parametrize("model", [network(), network(dropout("h0", "d0", 0.5))])
def test_a_model_that_draws_nothing_is_told_what_is_needed(model):
    model.graph.node.append(node("RandomNormalLike", ["y"], ["aside"]))
    model.graph.output.append(value("aside"))
    assert not has_random(load(model), "y")
    with pytest.raises(InvalidConfig, match="several 'model' parts") as caught:
        expose_random(load(model), "y")
    assert caught.value.violations[0].location == "config.measures"

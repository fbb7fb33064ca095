"""Random operators as noise that is fed."""

import numpy as np
import pytest
from graph_models import (
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
    node,
    opsets,
    run_exposed,
    value,
)
from onnx import AttributeProto, TensorProto, helper

from service.errors import InvalidConfig, InvalidOnnxModel
from service.graph.noise.random_operators import expose_random, has_random

OPSETS = (11, 15, 17, 21, 22, 26)
BERNOULLI_SINCE = 15
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


CHANCES = constant("chances", [[0, 0.1, 0.5, 0.500001, 0.9, 1]], np.float64)
LEAST, MOST = np.zeros((1, 6), np.float32), np.full((1, 6), 1 - 2**-24, np.float32)
BOUNDS = {"low": -1.0, "high": 3.0}
DRAWN = RNG.normal(size=(1, 6)).astype(np.float32)
SHARES = np.array([[0, 0.25, 0.5, 0.75, 0.875, 0.125]], dtype=np.float32)


def bernoulli(**attributes):
    return [
        node("Bernoulli", ["chances"], ["drawn"], **attributes),
        node("Cast", ["drawn"], ["r"], to=TensorProto.FLOAT),
    ]


NORMAL_LIKE = node("RandomNormalLike", ["x"], ["r"], mean=0.5, scale=2.0, seed=1.0)
UNIFORM_LIKE = node("RandomUniformLike", ["x"], ["r"], **BOUNDS)
UNIFORM = node("RandomUniform", [], ["r"], shape=[1, 6], **BOUNDS)
INTEGERS = bernoulli(dtype=TensorProto.INT64)
# Nodes that draw r, the noise that is fed, what r is then, and what it is without noise.
DRAWS = {
    "normal, like": ([NORMAL_LIKE], DRAWN, 0.5 + 2 * DRAWN, 0.5),
    "normal": ([node("RandomNormal", [], ["r"], shape=[1, 6], scale=0.5)], DRAWN, DRAWN / 2, 0),
    "uniform, like": ([UNIFORM_LIKE], SHARES, 4 * SHARES - 1, 1),
    "uniform": ([UNIFORM], SHARES, 4 * SHARES - 1, 1),
    "bernoulli, least": (bernoulli(), LEAST, [0, 1, 1, 1, 1, 1], [0, 0, 0, 1, 1, 1]),
    "bernoulli, most": (bernoulli(), MOST, [0, 0, 0, 0, 0, 1], [0, 0, 0, 1, 1, 1]),
    "bernoulli of integers": (INTEGERS, MOST, [0, 0, 0, 0, 0, 1], [0, 0, 0, 1, 1, 1]),
}


@pytest.mark.parametrize("opset", opsets(*OPSETS))
@pytest.mark.parametrize("draw", DRAWS)
def test_noise_is_fed_for_one_row_and_used_for_all(draw, opset):
    nodes, noise, fed, still = DRAWS[draw]
    if opset < BERNOULLI_SINCE and draw.startswith("bernoulli"):
        return
    model = drawing(*nodes, initializers=[CHANCES], opset=opset)
    got, (site,) = exposed(model, noise)
    assert site.kind == ("normal" if draw.startswith("normal") else "uniform")
    assert site.depends_on_rows == draw.endswith("like")
    assert (site.name, site.shape_output) == ("howsure_noise_0", "howsure_noise_shape_0")
    assert got["noise_shape_0"].tolist() == [7 if site.depends_on_rows else 1, 6]
    np.testing.assert_allclose(got["scores"], ROWS + fed, atol=1e-6)
    np.testing.assert_allclose(exposed(model)[0]["scores"], ROWS + still, atol=1e-6)


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

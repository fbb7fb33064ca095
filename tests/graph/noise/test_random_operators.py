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
    steps,
    value,
)
from onnx import AttributeProto, TensorProto, helper

from service.errors import InvalidConfig, InvalidOnnxModel
from service.graph.noise.random_operators import expose_random, has_random

BERNOULLI_SINCE = 15
RNG = np.random.default_rng(6)


def exposed(model, *noise, **options):
    return run_exposed(lambda loaded: expose_random(loaded, "y"), model, noise, **options)


def drawing(*nodes, kind=TensorProto.FLOAT, **others):
    """Return a model that adds what the nodes draw as ``r`` to its input."""
    ends = {"inputs": [value("x", ("N", 6), kind)], "outputs": [value("y", ("N", 6), kind)]}
    return make_model([*nodes, *steps("y = Add(x, r)")], **ends, **others)


CHANCES = constant("chances", [[0, 0.1, 0.5, 0.500001, 0.9, 1]], np.float64)
LEAST, MOST = np.zeros((1, 6), np.float32), np.full((1, 6), 1 - 2**-24, np.float32)
DRAWN = RNG.normal(size=(1, 6)).astype(np.float32)
SHARES = np.array([[0, 0.25, 0.5, 0.75, 0.875, 0.125]], dtype=np.float32)
CAST = "r = Cast<to=1>(drawn)"
# Nodes that draw r, the noise that is fed, what r is then, and what it is without noise.
DRAWS = {
    "normal, like": (
        "r = RandomNormalLike<mean=0.5, scale=2.0, seed=1.0>(x)",
        *(DRAWN, 0.5 + 2 * DRAWN, 0.5),
    ),
    "normal": ("r = RandomNormal<shape=[1, 6], scale=0.5>()", DRAWN, DRAWN / 2, 0),
    "uniform, like": ("r = RandomUniformLike<low=-1.0, high=3.0>(x)", SHARES, 4 * SHARES - 1, 1),
    "uniform": (
        "r = RandomUniform<shape=[1, 6], low=-1.0, high=3.0>()",
        *(SHARES, 4 * SHARES - 1, 1),
    ),
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
    text, noise, fed, still = DRAWS[draw]
    if opset < BERNOULLI_SINCE and draw.startswith("bernoulli"):
        return
    model = drawing(*steps(text), initializers=[CHANCES], opset=opset)
    outputs, (site,) = exposed(model, noise)
    assert site.kind == ("normal" if draw.startswith("normal") else "uniform")
    assert site.depends_on_rows == draw.endswith("like")
    assert (site.name, site.shape_output) == ("howsure_noise_0", "howsure_noise_shape_0")
    assert outputs["noise_shape_0"].tolist() == [7 if site.depends_on_rows else 1, 6]
    np.testing.assert_allclose(outputs["scores"], ROWS + fed, atol=1e-6)
    np.testing.assert_allclose(exposed(model)[0]["scores"], ROWS + still, atol=1e-6)


@pytest.mark.parametrize("opset", opsets(11, 14, 17, 22))
@pytest.mark.parametrize("dtype", ["", f"<dtype={TensorProto.DOUBLE}>"])
def test_draws_have_the_named_type_or_that_of_the_input(opset, dtype):
    nodes = steps(f"r = RandomNormalLike{dtype}(x)")
    model = drawing(*nodes, kind=TensorProto.DOUBLE, opset=opset)
    options = {"feeds": {"x": ROWS.astype(np.float64)}}
    options["choice"] = logits_choice(6, precision="float64")
    outputs, _ = exposed(model, DRAWN, **options)
    np.testing.assert_array_equal(outputs["scores"], ROWS.astype(np.float64) + DRAWN)


def test_a_scalar_draw_stays_one():
    """A Squeeze of one axis more would fail."""
    scalar = node("RandomNormal", [], ["s"])
    scalar.attribute.append(helper.make_attribute("shape", [], attr_type=AttributeProto.INTS))
    axes = constant("axes", [0, 1], np.int64)
    model = drawing(scalar, *steps("r = Unsqueeze(s, axes)"), initializers=[axes])
    np.testing.assert_array_equal(exposed(model)[0]["scores"], ROWS)
    outputs, _ = exposed(model, np.array(2.5, dtype=np.float32))
    np.testing.assert_array_equal(outputs["scores"], ROWS + np.float32(2.5))
    assert outputs["noise_shape_0"].tolist() == []


def test_dropout_stays_as_it_is():
    noise = steps("r = RandomNormalLike(h0); d0 = Add(h0, r)")
    loaded = load(network(noise, dropout("h1", "d1", 0.5)))
    assert len(expose_random(loaded, "y")) == 1
    assert "Dropout" in {step.op_type for step in loaded.graph.node}


def test_random_operators_of_functions_are_found():
    call, options = function_call(steps("r = RandomNormalLike(a); o = Add(a, r)"), "h0", "d0")
    model = network(call, **options)
    assert has_random(load(model), "y")
    outputs, sites = exposed(model)
    assert len(sites) == 1
    np.testing.assert_allclose(outputs["scores"], network_logits(ROWS), rtol=1e-4, atol=1e-5)


MULTINOMIAL = steps("i = Multinomial<sample_size=8>(h0); d0 = Cast<to=1>(i)")


REFUSED = [
    (network(MULTINOMIAL), "Multinomial"),
    (network(branched(steps("a = RandomNormalLike(h0)"), "h0", "d0")), "inside of If"),
    (drawing(*steps("r = RandomNormal()")), "no shape"),
]


@pytest.mark.parametrize(("model", "named"), REFUSED)
def test_what_cannot_be_fed_is_refused(model, named):
    assert has_random(load(model), "y")
    with pytest.raises(InvalidOnnxModel, match=named) as caught:
        expose_random(load(model), "y")
    assert caught.value.violations[0].location == "model"


@pytest.mark.parametrize("model", [network(), network(dropout("h0", "d0", 0.5))])
def test_a_model_that_draws_nothing_is_told_what_is_needed(model):
    model.graph.node.extend(steps("aside = RandomNormalLike(y)"))
    model.graph.output.append(value("aside"))
    assert not has_random(load(model), "y")
    with pytest.raises(InvalidConfig, match="'model' parts") as caught:
        expose_random(load(model), "y")
    assert caught.value.violations[0].location == "config.measures"

"""Models whose Dropout nodes cannot be fed, and what they are told."""

import pytest
from graph_models import (
    N_CLASSES,
    N_INPUTS,
    branched,
    dropout,
    function_call,
    load,
    make_model,
    network,
    node,
    value,
)
from onnx import TensorProto, helper

from service.errors import InvalidConfig, InvalidOnnxModel
from service.graph.noise.dropout import expose_dropout

NOISE = [node("RandomUniformLike", ["h0"], ["u0"]), node("Add", ["h0", "u0"], ["d0"])]
NO_RATIO = network(dropout("h0", "d0", 0.0), dropout("h1", "d1", 0.0))
COMPUTED_RATIO = network(
    [
        node("ReduceMax", ["x"], ["ratio"], keepdims=0),
        node("Dropout", ["h0", "ratio"], ["d0"]),
    ]
)
TWO_RATIOS = [
    node("Constant", [], ["two"], value=helper.make_tensor("r", TensorProto.FLOAT, [2], [0.1] * 2)),
    node("Dropout", ["h0", "two"], ["d0"]),
]


def of_ratio(ratio, opset):
    return network(dropout("h0", "d0", ratio, opset=opset), opset=opset)


def after_the_scores():
    model = network()
    model.graph.node.extend(dropout("y", "after", 0.5))
    model.graph.output.append(value("after", ("N", N_CLASSES)))
    return model


def of_nothing():
    nodes = [node("Dropout", [], ["n"]), node("Identity", ["x"], ["y"])]
    return make_model(nodes, inputs=[value("x", ("N", N_INPUTS))])


def of_another_opset():
    call, options = function_call(dropout("a", "o", 0.3), "h0", "d0", opset=16)
    return network(call, **options)


CONFIG, MODEL = (InvalidConfig, "config.measures"), (InvalidOnnxModel, "model")
LAST_LAYER_ALONE = "^(?!.*ensemble_variance).*last_layer_dropout_variance"
REFUSED = {
    "no dropout": (network(), 0.1, CONFIG, LAST_LAYER_ALONE),
    "another random operator": (network(NOISE), None, CONFIG, "ensemble_variance"),
    "dropout after the scores": (after_the_scores(), None, CONFIG, "no Dropout node"),
    "dropout of nothing": (of_nothing(), None, CONFIG, "no Dropout node"),
    "ratios of nothing": (NO_RATIO, None, CONFIG, "dropout.rate"),
    "computed ratio": (COMPUTED_RATIO, None, MODEL, "'d0'.*dropout.rate"),
    "ratio of one, opset 11": (of_ratio(1.0, 11), None, MODEL, "below 1"),
    "ratio of one": (of_ratio(1.0, 17), None, MODEL, "below 1"),
    "ratio of NaN, opset 11": (of_ratio(float("nan"), 11), None, MODEL, "below 1"),
    "ratio of NaN": (of_ratio(float("nan"), 17), None, MODEL, "below 1"),
    "two ratios": (network(TWO_RATIOS), None, MODEL, "below 1"),
    "in a branch": (
        network(branched(dropout("h0", "a", 0.5), "h0", "d0")),
        0.1,
        MODEL,
        "inside of If",
    ),
    "function of another opset": (of_another_opset(), None, MODEL, "without local functions"),
}


@pytest.mark.parametrize(("model", "rate", "error", "said"), REFUSED.values(), ids=REFUSED)
def test_a_model_that_cannot_be_fed_is_told_why(model, rate, error, said):
    kind, location = error
    with pytest.raises(kind, match=said) as caught:
        expose_dropout(load(model), "y", rate=rate)
    (violation,) = caught.value.violations
    assert violation.location == location


@pytest.mark.parametrize(("model", "n_sites"), [(NO_RATIO, 2), (COMPUTED_RATIO, 1)])
def test_a_rate_takes_the_place_of_a_ratio_that_is_missing(model, n_sites):
    sites = expose_dropout(load(model), "y", rate=0.2)
    assert [site.rate for site in sites] == [0.2] * n_sites

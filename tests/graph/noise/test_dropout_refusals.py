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


def refused(kind, model, *, rate=None):
    with pytest.raises(kind) as caught:
        expose_dropout(load(model), "y", rate=rate)
    (violation,) = caught.value.violations
    return violation


def test_a_model_without_dropout_is_sent_to_the_last_layer():
    violation = refused(InvalidConfig, network(), rate=0.1)
    assert violation.location == "config.measures"
    assert "last_layer_dropout_variance" in violation.message
    assert "ensemble_variance" not in violation.message


def test_a_random_operator_is_named_as_what_may_serve_instead():
    noise = [node("RandomUniformLike", ["h0"], ["u0"]), node("Add", ["h0", "u0"], ["d0"])]
    assert "ensemble_variance" in refused(InvalidConfig, network(noise)).message


def test_dropout_after_the_scores_does_not_count():
    model = network()
    model.graph.node.extend(dropout("y", "after", 0.5))
    model.graph.output.append(value("after", ("N", N_CLASSES)))
    assert "no Dropout node" in refused(InvalidConfig, model).message


def test_ratios_of_nothing_ask_for_a_rate():
    model = network(dropout("h0", "d0", 0.0), dropout("h1", "d1", 0.0))
    violation = refused(InvalidConfig, model)
    assert violation.location == "config.measures"
    assert "dropout.rate" in violation.message
    assert len(expose_dropout(load(model), "y", rate=0.2)) == 2


def fed_ratio():
    drop = [
        node("ReduceMax", ["x"], ["ratio"], keepdims=0),
        node("Dropout", ["h0", "ratio"], ["d0"]),
    ]
    return network(drop)


def test_a_computed_ratio_asks_for_a_rate():
    violation = refused(InvalidOnnxModel, fed_ratio())
    assert violation.location == "model"
    assert "'d0'" in violation.message
    assert "dropout.rate" in violation.message
    (site,) = expose_dropout(load(fed_ratio()), "y", rate=0.2)
    assert site.rate == 0.2


@pytest.mark.parametrize("opset", [11, 17])
@pytest.mark.parametrize("ratio", [1.0, float("nan")])
def test_a_ratio_out_of_range_is_refused(ratio, opset):
    model = network(dropout("h0", "d0", ratio, opset=opset), opset=opset)
    assert "below 1" in refused(InvalidOnnxModel, model).message


def test_a_ratio_of_several_numbers_is_refused():
    two = helper.make_tensor("r", TensorProto.FLOAT, [2], [0.1, 0.2])
    drop = [node("Constant", [], ["two"], value=two), node("Dropout", ["h0", "two"], ["d0"])]
    assert "below 1" in refused(InvalidOnnxModel, network(drop)).message


def test_dropout_inside_a_branch_is_refused():
    model = network(branched(dropout("h0", "a", 0.5), "h0", "d0"))
    violation = refused(InvalidOnnxModel, model, rate=0.1)
    assert violation.location == "model"
    assert "inside of If" in violation.message


def test_functions_of_another_opset_are_refused():
    call, options = function_call(dropout("a", "o", 0.3), "h0", "d0", opset=16)
    model = network(call, **options)
    assert "without local functions" in refused(InvalidOnnxModel, model).message


def test_a_dropout_of_nothing_is_none():
    model = make_model(
        [node("Dropout", [], ["n"]), node("Identity", ["x"], ["y"])],
        inputs=[value("x", ("N", N_INPUTS))],
    )
    assert "no Dropout node" in refused(InvalidConfig, model).message

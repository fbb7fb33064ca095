"""What is wanted back, as it stands in a request and as it travels."""

import json

import pytest

from service.errors import InvalidInput
from service.runner.messages.open_inference import (
    RequestedOutputs,
    parse_infer_request,
    requested_outputs,
)

INPUT = {"name": "x", "shape": [1, 1], "datatype": "FP32", "data": [0.5]}


def wanted(**fields):
    return requested_outputs(parse_infer_request(json.dumps({"inputs": [INPUT], **fields})))


@pytest.mark.parametrize("outputs", [{}, {"outputs": []}, {"outputs": None}])
@pytest.mark.parametrize("binary", [True, False])
def test_all_outputs_are_wanted_if_none_is_named(outputs, binary):
    parameters = {"binary_data_output": binary}
    assert wanted(**outputs, parameters=parameters) == RequestedOutputs(None, binary, None)


def test_an_output_is_binary_if_it_or_the_request_says_so():
    outputs = [
        {"name": "class"},
        {"name": "abstain", "parameters": {"binary_data": True}},
        {"name": "top1_bin", "parameters": {"binary_data": False, "other": 3}},
    ]
    found = wanted(id="seven", outputs=outputs)
    assert found == RequestedOutputs(
        "seven", False, [("class", False), ("abstain", True), ("top1_bin", False)]
    )
    found = wanted(outputs=outputs, parameters={"binary_data_output": True})
    assert found.outputs == [("class", True), ("abstain", True), ("top1_bin", False)]


@pytest.mark.parametrize("value", [0, 1, "true", 1.0])
def test_a_flag_must_be_a_boolean(value):
    with pytest.raises(InvalidInput) as caught:
        wanted(parameters={"binary_data_output": value})
    assert caught.value.violations[0].location == "parameters.binary_data_output"
    with pytest.raises(InvalidInput) as caught:
        wanted(outputs=[{"name": "class", "parameters": {"binary_data": value}}])
    assert caught.value.violations[0].location == "outputs.class.parameters.binary_data"

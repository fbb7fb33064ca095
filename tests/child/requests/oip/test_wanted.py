"""What is wanted back, as it stands in a request and as it travels."""

import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.errors import InvalidInput
from service.runner.messages.open_inference import Wanted, parse_infer_request, wanted_of

INPUT = {"name": "x", "shape": [1, 1], "datatype": "FP32", "data": [0.5]}


def wanted(**fields):
    return wanted_of(parse_infer_request(json.dumps({"inputs": [INPUT], **fields})))


@pytest.mark.parametrize("outputs", [{}, {"outputs": []}, {"outputs": None}])
@pytest.mark.parametrize("binary", [True, False])
def test_where_no_output_is_named_all_are_wanted(outputs, binary):
    parameters = {"binary_data_output": binary}
    assert wanted(**outputs, parameters=parameters) == Wanted(None, binary, None)


def test_an_output_is_raw_where_it_says_so_or_where_all_are():
    outputs = [
        {"name": "class"},
        {"name": "abstain", "parameters": {"binary_data": True}},
        {"name": "top1_bin", "parameters": {"binary_data": False, "other": 3}},
    ]
    found = wanted(id="seven", outputs=outputs)
    assert found == Wanted(
        "seven", False, [("class", False), ("abstain", True), ("top1_bin", False)]
    )
    found = wanted(outputs=outputs, parameters={"binary_data_output": True})
    assert found.outputs == [("class", True), ("abstain", True), ("top1_bin", False)]


@pytest.mark.parametrize("value", [0, 1, "true", 1.0])
def test_a_flag_that_is_neither_true_nor_false_is_refused(value):
    with pytest.raises(InvalidInput) as caught:
        wanted(parameters={"binary_data_output": value})
    assert caught.value.violations[0].location == "parameters.binary_data_output"
    with pytest.raises(InvalidInput) as caught:
        wanted(outputs=[{"name": "class", "parameters": {"binary_data": value}}])
    assert caught.value.violations[0].location == "outputs.class.parameters.binary_data"


@given(
    st.builds(
        Wanted,
        st.none() | st.text(),
        st.booleans(),
        st.none() | st.lists(st.tuples(st.text(), st.booleans())),
    )
)
def test_it_travels(sent):
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(sent), type=Wanted) == sent

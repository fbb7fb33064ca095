"""Bodies as they come over the wire, and what is wanted back."""

import gzip
import json
import random
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.child.requests.open_inference import divide, inflate
from service.errors import InvalidInput, MalformedRequest, TooLarge
from service.runner.messages.open_inference import (
    RequestedOutputs,
    parse_infer_request,
    requested_outputs,
)

COMPRESS = {"gzip": gzip.compress, "deflate": zlib.compress}


# A large one inflates in pieces.
SIZES = [(0, 0), (0, 1), (0, 5000), (700_000, 2_000_000)]


@pytest.mark.parametrize(("n_random", "n_zeros"), SIZES)
@pytest.mark.parametrize("encoding", COMPRESS)
def test_a_body_is_inflated_up_to_the_limit(encoding, n_random, n_zeros):
    body = random.Random(0).randbytes(n_random) + bytes(n_zeros)
    packed = COMPRESS[encoding](body)
    assert bytes(inflate(packed, encoding, max_bytes=len(body))) == body
    if body:
        with pytest.raises(TooLarge):
            inflate(packed, encoding, max_bytes=len(body) - 1)
        for cut in range(0, len(packed), 1 + len(packed) // 200):
            with pytest.raises(MalformedRequest):
                inflate(packed[:cut], encoding, max_bytes=2 * len(body))


@given(st.binary(max_size=50), st.text(max_size=5) | st.integers(0, 60).map(str))
def test_a_body_is_divided_without_loss_or_refused(body, length):
    try:
        text, raw = divide(body, length)
    except MalformedRequest:
        assert not (length.isascii() and length.isdigit() and int(length) <= len(body))
    else:
        assert bytes(text) + bytes(raw) == body
        assert len(text) == int(length)


INPUT = {"name": "x", "shape": [1, 1], "datatype": "FP32", "data": [0.5]}


def wanted(**fields):
    return requested_outputs(parse_infer_request(json.dumps({"inputs": [INPUT], **fields})))


@pytest.mark.parametrize("binary", [True, False])
def test_an_output_is_binary_if_it_or_the_request_says_so(binary):
    parameters = {"binary_data_output": binary}
    for outputs in ({}, {"outputs": []}, {"outputs": None}):
        assert wanted(**outputs, parameters=parameters) == RequestedOutputs(None, binary, None)
    outputs = [
        {"name": "class"},
        {"name": "abstain", "parameters": {"binary_data": True}},
        {"name": "top1_bin", "parameters": {"binary_data": False, "other": 3}},
    ]
    assert wanted(id="seven", outputs=outputs, parameters=parameters) == RequestedOutputs(
        "seven", binary, [("class", binary), ("abstain", True), ("top1_bin", False)]
    )


@pytest.mark.parametrize("value", [0, "true", 1.0])
def test_a_flag_must_be_a_boolean(value):
    output = {"name": "class", "parameters": {"binary_data": value}}
    for fields in ({"parameters": {"binary_data_output": value}}, {"outputs": [output]}):
        with pytest.raises(InvalidInput) as caught:
            wanted(**fields)
        assert "binary_data" in caught.value.violations[0].location

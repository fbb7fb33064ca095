"""Requests that break the Open Inference Protocol, or a limit: one clear sentence each.

The values and shapes of JSON are in tests/hostile/json.
"""

import gzip
import io
import json
import zlib
from typing import Any

import httpx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oip_service import LENGTH, in_bytes, in_json, infer, outputs_of
from running_service import calibrate, digits, service_on

PIXELS = np.load(io.BytesIO(digits("evaluation.npz")))["inputs"][:3].astype(np.float32)
RAW = PIXELS.tobytes()
JSON = in_json("inputs", PIXELS)
BYTES = in_bytes("inputs", PIXELS)
HEAD = json.dumps({"inputs": [BYTES]}).encode()
INFINITE = PIXELS.copy()
INFINITE[2, 5] = np.inf
LIMIT = 20_000

pytestmark = pytest.mark.usefixtures("digits_calibration")


def inputs(*tensors: dict, **more: Any) -> dict:
    return {"inputs": list(tensors), **more}


def refused(answer: httpx.Response, status: int, *words: str) -> None:
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/json"
    assert answer.json().keys() == {"error"}
    for word in words:
        assert word in answer.json()["error"]


JSON_CASES = {
    "no JSON": (b"{", 400, "body"),
    "another encoding": ('{"inputs": []}'.encode("utf-16"), 400, "body"),
    "a list": (b"[]", 400, "object"),
    "no inputs": (b"{}", 400, "inputs"),
    "an id that is no text": (inputs(JSON, id=4), 400, "id"),
    "deep data": (inputs(JSON | {"data": json.loads("[" * 90 + "]" * 90)}), 400, "inputs.inputs"),
    "no name": (inputs({"shape": [1], "datatype": "FP32", "data": [1]}), 400, "name"),
    "another name": (inputs(JSON | {"name": "pixels"}), 400, "inputs.pixels"),
    "one input too many": (inputs(JSON, JSON | {"name": "more"}), 400, "inputs.more"),
    "no shape": (inputs({k: v for k, v in JSON.items() if k != "shape"}), 400, "shape"),
    "another shape": (inputs(JSON | {"shape": [3, 8, 8]}), 400, "expected shape [rows, 64]"),
    "a shape of more": (inputs(JSON | {"shape": [4, 64]}), 400, "expected 256 values"),
    "nested otherwise": (
        inputs(JSON | {"data": PIXELS.reshape(3, 8, 8).tolist()}),
        400,
        "[3, 8, 8]",
    ),
    "ragged": (inputs(JSON | {"data": [[0] * 63, [0] * 65, [0] * 64]}), 400, "row 1 has 65"),
    "an unknown type": (inputs(JSON | {"datatype": "FP31"}), 400, "FP31"),
    "half precision": (inputs(JSON | {"datatype": "FP16"}), 400, "binary"),
    "no integers": (inputs(JSON | {"datatype": "INT8", "data": [0.5] * 192}), 400, "data[0]"),
    "above its type": (
        inputs(JSON | {"datatype": "INT8", "data": [128] * 192}),
        400,
        "-128 to 127",
    ),
    "no data": (inputs({k: v for k, v in JSON.items() if k != "data"}), 400, "data"),
    "bytes that are not there": (inputs(BYTES), 400, "768 bytes"),
    "data and bytes": (inputs(JSON | BYTES), 400, "either"),
    "an unknown output": (inputs(JSON, outputs=[{"name": "logits"}]), 400, "outputs.logits"),
    "an output twice": (inputs(JSON, outputs=[{"name": "class"}] * 2), 400, "twice"),
    "binary by word": (
        inputs(JSON, outputs=[{"name": "class", "parameters": {"binary_data": "yes"}}]),
        400,
        "outputs.class.parameters.binary_data",
    ),
    "all binary by word": (
        inputs(JSON, parameters={"binary_data_output": "yes"}),
        400,
        "parameters.binary_data_output",
    ),
    "no time": (inputs(JSON, parameters={"timeout": -1}), 400, "parameters.timeout"),
    "no whole time": (inputs(JSON, parameters={"timeout": 0.5}), 400, "parameters.timeout"),
    "a true time": (inputs(JSON, parameters={"timeout": True}), 400, "parameters.timeout"),
    "nested parameters": (inputs(JSON, parameters={"a": [1]}), 400, "parameters"),
    "classification": (
        inputs(JSON, outputs=[{"name": "class", "parameters": {"classification": 2}}]),
        400,
        "classification",
    ),
    "too many rows": (inputs(JSON | {"shape": [10_001, 64]}), 413, "10000 rows"),
}


@pytest.mark.parametrize("case", JSON_CASES)
def test_json(client, case: str) -> None:
    request, status, word = JSON_CASES[case]

    refused(infer(client, "digits", request), status, word)


BYTE_CASES = {
    "a length with a sign": (HEAD + RAW, f"+{len(HEAD)}", LENGTH),
    "a length short by one": (HEAD + RAW, str(len(HEAD) - 1), "body"),
    "missing bytes": (HEAD + RAW[:-4], str(len(HEAD)), "764 are left"),
    "bytes left over": (HEAD + RAW + b"1234", str(len(HEAD)), "4 bytes are left over"),
    "a size that is not the shape's": (
        json.dumps(inputs(BYTES | {"parameters": {"binary_data_size": 764}})).encode() + RAW,
        None,
        "expected 768",
    ),
    "no row of raw bytes": (b"", "0", "expected 256"),
    "three rows of raw bytes": (RAW, "0", "expected 256"),
}


@pytest.mark.parametrize("case", BYTE_CASES)
def test_bytes(client, case: str) -> None:
    body, length, word = BYTE_CASES[case]
    length = str(body.rindex(b"}") + 1) if length is None else length
    headers = {LENGTH: length}

    refused(client.post("/v2/models/digits/infer", content=body, headers=headers), 400, word)


@given(st.data())
@settings(max_examples=60)
def test_no_body_is_more_than_refused(client, data) -> None:
    whole = bytearray(HEAD + RAW)
    for _ in range(data.draw(st.integers(1, 3))):
        position = data.draw(st.integers(0, len(HEAD) + 8))
        whole[position] = data.draw(st.integers(0, 255))
    length = data.draw(st.integers(0, len(whole)) | st.just(len(HEAD)))

    answer = client.post(
        "/v2/models/digits/infer", content=bytes(whole), headers={LENGTH: str(length)}
    )

    if answer.status_code == httpx.codes.OK:
        assert len(outputs_of(answer)["class"]) == 3
    else:
        refused(answer, answer.status_code)
        assert answer.status_code in (400, 413)


def test_paths_that_there_are_not(client) -> None:
    refused(client.get("/v2/nothing"), 404)
    refused(client.get("/v2/models/nobody"), 404, "nobody")
    refused(client.get("/v2/models/digits/versions/1.0"), 404, "1.0")
    refused(client.get("/v2/models/%00"), 404)
    refused(client.post("/v2/repository/models/digits/load", json={}), 404)
    refused(client.get("/v2/models/digits/infer"), 405)
    refused(infer(client, "nobody", inputs(JSON)), 404, "nobody")
    refused(client.post("/v2/repository/index", content=b"["), 400, "ready")


def test_other_paths_keep_their_problems(client) -> None:
    for path in ("/nothing", "/v2x", "/calibrations/nobody"):
        answer = client.get(path)
        assert answer.status_code == 404
        assert answer.headers["content-type"] == "application/problem+json"


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """A service that takes bodies of 20,000 bytes."""
    with service_on(tmp_path_factory.mktemp("small"), max_predict_bytes=LIMIT) as client:
        calibrate(client, calibration=digits("calibration_logits.csv"), config='{"name": "logits"}')
        yield client


@pytest.mark.parametrize("encoding", ["gzip", "deflate"])
def test_bodies_that_inflate_beyond_the_limit(small, encoding: str) -> None:
    compress = {"gzip": gzip.compress, "deflate": zlib.compress}[encoding]
    row = in_json("logits", np.zeros((1, 10)))
    request = json.dumps(inputs(row)).encode()
    headers = {"Content-Encoding": encoding}

    fits = compress(request + b" " * (LIMIT - len(request)))
    assert infer(small, "logits", fits, **headers).status_code == httpx.codes.OK
    beyond = compress(request + b" " * (LIMIT + 1 - len(request)))
    refused(infer(small, "logits", beyond, **headers), 413, "20000")
    bomb = compress(b" " * 10_000_000)
    assert len(bomb) < LIMIT
    refused(infer(small, "logits", bomb, **headers), 413, "20000")


def test_encodings(small) -> None:
    packed = gzip.compress(json.dumps(inputs(in_json("logits", np.zeros((1, 10))))).encode())

    refused(infer(small, "logits", packed, **{"Content-Encoding": "br"}), 415, "gzip")
    refused(infer(small, "logits", packed, **{"Content-Encoding": "gzip, gzip"}), 415)
    refused(infer(small, "logits", packed, **{"Content-Encoding": "deflate"}), 400, "deflate")
    refused(infer(small, "logits", packed[:-9], **{"Content-Encoding": "gzip"}), 400, "whole")
    refused(infer(small, "logits", packed + b"x", **{"Content-Encoding": "gzip"}), 400, "whole")
    refused(infer(small, "logits", b" " * (LIMIT + 1)), 413, "20000")

"""Requests that break the Open Inference Protocol get one clear sentence each.

The decoder's own rules are in tests/child/requests/oip, those of arrays in test_refusals.
"""

import gzip
import io
import json
import zlib
from typing import Any

import httpx
import numpy as np
import pytest
from request_formats import LENGTH, in_bytes, in_json, infer
from running_service import digits

PIXELS = np.load(io.BytesIO(digits("evaluation.npz")))["inputs"][:3].astype(np.float32)
RAW = PIXELS.tobytes()
JSON = in_json("inputs", PIXELS)
BYTES = in_bytes("inputs", PIXELS)
HEAD = json.dumps({"inputs": [BYTES]}).encode()
LENGTH_OF_HEAD = str(len(HEAD))
OTHER_SIZE = HEAD.replace(b"768", b"764")

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
    "no JSON": (b"{", "body"),
    "no inputs": ({}, "inputs"),
    "an id that is no text": (inputs(JSON, id=4), "id"),
    "no shape": (inputs({k: v for k, v in JSON.items() if k != "shape"}), "shape"),
    "another name": (inputs(JSON | {"name": "pixels"}), "inputs.pixels"),
    "a shape of more": (inputs(JSON | {"shape": [4, 64]}), "expected 256 values"),
    "nested otherwise": (inputs(JSON | {"data": PIXELS.reshape(3, 8, 8).tolist()}), "[3, 8, 8]"),
    "an unknown type": (inputs(JSON | {"datatype": "FP31"}), "FP31"),
    "above its type": (inputs(JSON | {"datatype": "INT8", "data": [128] * 192}), "-128 to 127"),
    "bytes that are not there": (inputs(BYTES), "768 bytes"),
    "data and bytes": (inputs(JSON | BYTES), "either"),
    "an unknown output": (inputs(JSON, outputs=[{"name": "logits"}]), "outputs.logits"),
    "an output twice": (inputs(JSON, outputs=[{"name": "class"}] * 2), "twice"),
    "nested parameters": (inputs(JSON, parameters={"a": [1]}), "parameters"),
    "classification": (
        inputs(JSON, outputs=[{"name": "class", "parameters": {"classification": 2}}]),
        "classification",
    ),
}


@pytest.mark.parametrize("case", JSON_CASES)
def test_json(client, case: str) -> None:
    request, word = JSON_CASES[case]
    refused(infer(client, "digits", request), 400, word)


@pytest.mark.parametrize(
    ("body", "length", "word"),
    [
        pytest.param(HEAD + RAW, f"+{len(HEAD)}", LENGTH, id="a length with a sign"),
        pytest.param(HEAD + RAW[:-4], LENGTH_OF_HEAD, "764 are left", id="missing bytes"),
        pytest.param(HEAD + RAW + b"1234", LENGTH_OF_HEAD, "4 bytes are left over", id="more"),
        pytest.param(OTHER_SIZE, LENGTH_OF_HEAD, "expected 768", id="not the size of the shape"),
        pytest.param(RAW, "0", "expected 256", id="three rows without JSON"),
    ],
)
def test_bytes(client, body: bytes, length: str, word: str) -> None:
    refused(infer(client, "digits", body, **{LENGTH: length}), 400, word)


def test_unknown_paths_get_oip_errors(client) -> None:
    refused(client.get("/v2/nothing"), 404)
    refused(client.get("/v2/models/nobody"), 404, "nobody")
    refused(client.get("/v2/models/digits/versions/1.0"), 404, "1.0")
    refused(client.get("/v2/models/%00"), 404)
    refused(client.post("/v2/repository/models/digits/load", json={}), 404)
    refused(client.get("/v2/models/digits/infer"), 405)
    refused(infer(client, "nobody", inputs(JSON)), 404, "nobody")
    refused(client.post("/v2/repository/index", content=b"["), 400, "ready")


def test_unknown_paths_outside_oip_get_problems(client) -> None:
    for path in ("/nothing", "/v2x", "/calibrations/nobody"):
        answer = client.get(path)
        assert answer.status_code == 404
        assert answer.headers["content-type"] == "application/problem+json"


def test_encodings(client) -> None:
    packed = gzip.compress(json.dumps(inputs(JSON)).encode())
    large = bytes(33 * 1024**2)
    for encoding, body, status, word in (
        ("br", packed, 415, "gzip"),
        ("gzip, gzip", packed, 415, "gzip"),
        ("deflate", packed, 400, "deflate"),
        ("gzip", packed[:-9], 400, "whole"),
        ("gzip", gzip.compress(large), 413, "inflated"),
        ("deflate", zlib.compress(large), 413, "inflated"),
        ("identity", large, 413, "33554432"),
    ):
        refused(infer(client, "digits", body, **{"Content-Encoding": encoding}), status, word)

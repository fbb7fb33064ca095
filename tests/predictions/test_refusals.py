"""Requests that break a rule get one clear problem, by /predict and the Open Inference Protocol.

Each kind meets each route once; what breaks a rule within a body is in tests/hostile.
"""

import gzip
import json
from typing import Any

import httpx
import numpy as np
import pytest
from dataset_files import changed
from keyed_service import logits_of
from request_formats import LENGTH, in_bytes, in_json, infer
from running_service import JSON, NPY, NPZ, calibrated, encoded, npy, npz, send

ROWS = np.zeros((3, 64), np.float32)
TOO_LARGE = bytes(33 * 1024**2)


def check_problem(answer: httpx.Response, status: int, place: str, word: str = "") -> None:
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    problem = answer.json()
    assert [violation["location"] for violation in problem["errors"]] == [place], problem
    assert word in problem["detail"], problem
    assert problem["type"] != "urn:howsure:problem:invalid-dataset"
    assert len(problem["detail"]) < 600


def check_oip_error(answer: httpx.Response, status: int, word: str = "") -> None:
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/json"
    assert answer.json().keys() == {"error"}
    assert word in answer.json()["error"]


def of_digits(**rows: Any) -> dict[str, Any]:
    return {"calibration": "digits", **rows}


# How an array is sent, by media type, and where its rows are counted.
WRITERS = {
    "lists": lambda array: (JSON, of_digits(inputs=array.tolist()), "inputs"),
    "base64": lambda array: (JSON, of_digits(inputs=encoded(array)), "inputs"),
    "npy": lambda array: (NPY, npy(array), "body"),
    "npz": lambda array: (NPZ, npz(inputs=array), "body.inputs"),
}


ARRAYS = {
    "width": (ROWS[:, 1:], "inputs.inputs", "64", 422),
    # A decoder that counts rows before it knows the input names the part of the body.
    "rows": (np.zeros((10_001, 1), np.uint8), None, "10000 rows", 413),
    "NaN": (changed(ROWS, (2, 5), np.nan), "inputs[2][5]", "NaN", 422),
}


@pytest.mark.usefixtures("digits_calibration")
@pytest.mark.parametrize("case", ARRAYS)
def test_arrays_in_each_form(client, case) -> None:
    array, place, word, status = ARRAYS[case]
    for name, write in WRITERS.items():
        if name == "lists" and word == "NaN":
            continue  # JSON has none
        headers, body, counted_at = write(array)
        check_problem(send(client, "digits", body, headers), status, place or counted_at, word)
    datatype = "UINT8" if array.dtype.kind == "u" else "FP32"
    tensors = {"inputs": [in_bytes("inputs", array, datatype)]}
    answer = infer(client, "digits", tensors, array.tobytes())
    check_oip_error(answer, 413 if status == 413 else 400, word)


FORM = {"Content-Type": "application/x-www-form-urlencoded"}
BODIES = {
    "no JSON": (JSON, b"{", 400, "body", ""),
    "a picture as JSON": (JSON, b"\xff\xd8\xff\xe0", 400, "body", "Content-Type"),
    "an unknown input": (JSON, of_digits(inputs={"x": [[0]]}), 422, "inputs.x", ""),
    "logits for a model": (JSON, of_digits(logits=[[1.0]]), 422, "inputs", "`inputs`"),
    "no .npz file": (NPZ, npy(ROWS), 400, "body", "numpy.savez"),
    "an unused column": (NPZ, npz(inputs=ROWS, uncertainty_own=ROWS[:, 0]), 422, "supplied", ""),
    "another type": ({"Content-Type": "text/plain"}, b"x", 415, "Content-Type", "image/png"),
    "the type that curl sends": (FORM, b"{}", 415, "Content-Type", "-H 'Content-Type: "),
    "another encoding": ({"Content-Encoding": "gzip"} | NPY, b"x", 415, "Content-Encoding", ""),
}


@pytest.mark.usefixtures("digits_calibration")
@pytest.mark.parametrize("case", BODIES)
def test_bodies(client, case: str) -> None:
    headers, body, status, place, word = BODIES[case]
    check_problem(send(client, "digits", body, headers), status, place, word)


def test_outputs(client) -> None:
    logits, own = np.eye(4, dtype=np.float32)[np.arange(80) % 4], np.arange(80) / 80
    config = {"name": "refusing", "measures": ["supplied:own"], "serve": {"1": "supplied:own"}}
    arrays = {"logits": logits, "labels": np.arange(80) % 3, "uncertainty_own": own}
    calibrated(client, config, calibration=npz(**arrays))
    few, five = logits[:5], own[:5]
    for rows, place, word in (
        ({"inputs": few, "uncertainty_own": five}, "inputs", "`logits`"),
        ({"logits": few[:, :3], "uncertainty_own": five}, "logits", "[rows, 4]"),
        ({"probabilities": few * 2, "uncertainty_own": five}, "probabilities[0]", "sum"),
        ({"logits": np.full((5, 4), 0.25), "uncertainty_own": five}, "logits", "`probabilities`"),
        ({"logits": few > 0, "uncertainty_own": five}, "logits", "booleans"),
        ({"logits": changed(few, (0, 1), -np.inf), "uncertainty_own": five}, "logits[0][1]", "inf"),
        ({"logits": few}, "supplied.own", "one a row"),
        ({"logits": few, "uncertainty_own": five[:1]}, "supplied.own", "5 numbers"),
        ({"logits": few, "uncertainty_own": changed(five, 4, np.nan)}, "supplied.own[4]", "NaN"),
    ):
        check_problem(send(client, "refusing", npz(**rows), NPZ), 422, place, word)


@pytest.mark.usefixtures("digits_calibration")
def test_the_query_names_the_calibration_of_arrays_and_not_of_json(client) -> None:
    for params in ({}, {"calibration": ""}):
        answer = client.post("/predict", content=npy(ROWS), headers=NPY, params=params)
        check_problem(answer, 422, "query.calibration", "calibration=")
    twice = client.post("/predict", json=of_digits(inputs=[]), params={"calibration": "digits"})
    check_problem(twice, 422, "query.calibration")
    answer = send(client, "digits", npy(ROWS), NPY | {"Accept": "application/x-npy"})
    assert answer.status_code == 406
    assert "application/x-npz" in answer.json()["detail"]


def test_an_unknown_calibration(client) -> None:
    calibrated(client, {"name": "newest"}, calibration=logits_of())  # older ones are not compared
    for name, near in (("nobody", ""), ("@", ""), ("newest@9", "'newest'"), ("newst", "'newest'")):
        check_problem(send(client, name, npy(ROWS), NPY), 404, "calibration", near)
        body = {"calibration": name, "inputs": []}
        check_problem(client.post("/predict", json=body), 404, "calibration", near)
        assert client.get(f"/calibrations/{name}").status_code == 404


TENSOR = in_json("inputs", ROWS)
HEAD = json.dumps({"inputs": [in_bytes("inputs", ROWS)]}).encode()
PACKED = gzip.compress(json.dumps({"inputs": [TENSOR]}).encode())
OUTPUTS = [{"name": "logits"}]


def content_encoding(value: str) -> dict[str, str]:
    return {"Content-Encoding": value}


# A request of the protocol, its headers, and a status with a word of the error.
OIP_REQUESTS = {
    "another name": ({"inputs": [TENSOR | {"name": "pixels"}]}, {}, 400, "inputs.pixels"),
    "an unknown output": ({"inputs": [TENSOR], "outputs": OUTPUTS}, {}, 400, "outputs.logits"),
    "more bytes": (HEAD + ROWS.tobytes() + b"1234", {LENGTH: str(len(HEAD))}, 400, "4 bytes"),
    "three rows without JSON": (ROWS.tobytes(), {LENGTH: "0"}, 400, "256"),
    "br": (PACKED, content_encoding("br"), 415, "gzip"),
    "gzip twice": (PACKED, content_encoding("gzip, gzip"), 415, "gzip"),
    "gzip as deflate": (PACKED, content_encoding("deflate"), 400, "deflate"),
    "a bomb": (gzip.compress(TOO_LARGE), content_encoding("gzip"), 413, "inflated"),
    "too many bytes": (TOO_LARGE, content_encoding("identity"), 413, "33554432"),
}


@pytest.mark.usefixtures("digits_calibration")
@pytest.mark.parametrize("case", OIP_REQUESTS)
def test_oip_requests(client, case: str) -> None:
    request, headers, status, word = OIP_REQUESTS[case]
    check_oip_error(infer(client, "digits", request, **headers), status, word)


PATHS = {"nothing": "", "models/nobody": "nobody", "models/digits/versions/1.0": "1.0"}


@pytest.mark.usefixtures("digits_calibration")
def test_unknown_paths(client) -> None:
    for path, word in (PATHS | {"models/%00": ""}).items():
        check_oip_error(client.get(f"/v2/{path}"), 404, word)
    check_oip_error(client.post("/v2/repository/models/digits/load", json={}), 404)
    check_oip_error(client.get("/v2/models/digits/infer"), 405)
    check_oip_error(infer(client, "nobody", {"inputs": [TENSOR]}), 404, "nobody")
    check_oip_error(client.post("/v2/repository/index", content=b"["), 400, "ready")
    for path in ("/nothing", "/v2x"):
        answer = client.get(path)
        assert answer.status_code == 404
        assert answer.headers["content-type"] == "application/problem+json"

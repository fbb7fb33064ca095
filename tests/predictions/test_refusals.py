"""Requests that break a rule get one clear problem, by /predict and the Open Inference Protocol.

The rules of bodies are in tests/child/requests: here each kind meets each route once.
"""

import gzip
import json
import zlib
from typing import Any

import httpx
import numpy as np
import pytest
from request_formats import LENGTH, in_bytes, in_json, infer
from running_service import JSON, NPY, NPZ, calibrated, encoded, npy, npz, send

ROWS = np.zeros((3, 64), np.float32)
TOO_LARGE = bytes(33 * 1024**2)

pytestmark = pytest.mark.usefixtures("digits_calibration")


def changed(array: np.ndarray, index: Any, value: float) -> np.ndarray:
    array = array.copy()
    array[index] = value
    return array


def check_problem(answer: httpx.Response, status: int, place: str, word: str = "") -> None:
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    problem = answer.json()
    (violation,) = problem["errors"]
    assert violation["location"] == place, problem
    assert word in problem["detail"], problem
    assert problem["type"] != "urn:howsure:problem:invalid-dataset"
    assert len(problem["detail"]) < 600


def check_oip_error(answer: httpx.Response, status: int, word: str = "") -> None:
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/json"
    assert answer.json().keys() == {"error"}
    assert word in answer.json()["error"]


# How an array is sent, by media type.
WRITERS = {
    "lists": lambda array: (JSON, {"calibration": "digits", "inputs": array.tolist()}),
    "base64": lambda array: (JSON, {"calibration": "digits", "inputs": encoded(array)}),
    "npy": lambda array: (NPY, npy(array)),
    "npz": lambda array: (NPZ, npz(inputs=array)),
}


@pytest.mark.parametrize(
    ("array", "place", "word", "status"),
    [
        (ROWS[:, 1:], "inputs.inputs", "64", 422),
        # A decoder that counts rows before it knows the input names the part of the body.
        (np.zeros((10_001, 1), np.uint8), None, "10000 rows", 413),
        (changed(ROWS, (2, 5), np.nan), "inputs[2][5]", "NaN", 422),
        (changed(ROWS.astype(float), (2, 5), 1e39), "inputs[2][5]", "32-bit", 422),
        (np.full((1, 64), 7, "u1").view("?"), "inputs[0][0]", "true or", 422),
        (ROWS[None], "inputs.inputs", "64", 422),
    ],
    ids=["width", "rows", "NaN", "beyond float32", "a truth value of 7", "rank"],
)
def test_arrays_in_each_form(client, array, place, word, status) -> None:
    for name, write in WRITERS.items():
        if name == "lists" and word in ("NaN", "true or"):
            continue  # JSON has no such value
        headers, body = write(array)
        counted_at = {"npy": "body", "npz": "body.inputs"}.get(name, "inputs")
        check_problem(send(client, "digits", body, headers), status, place or counted_at, word)
    datatype = {"b": "BOOL", "u": "UINT8", "f": f"FP{8 * array.itemsize}"}[array.dtype.kind]
    tensors = {"inputs": [in_bytes("inputs", array, datatype)]}
    answer = infer(client, "digits", tensors, array.tobytes())
    check_oip_error(answer, 413 if status == 413 else 400, word)


def of_digits(**rows: Any) -> dict[str, Any]:
    return {"calibration": "digits", **rows}


LARGE_WHEN_UNPACKED = npz(compressed=True, inputs=np.zeros((9_000, 64, 64), np.uint8))
BODIES = {
    "no JSON": (JSON, b"{", 400, "body", ""),
    "a picture as JSON": (JSON, b"\xff\xd8\xff\xe0", 400, "body", "Content-Type"),
    "a misspelt field": (JSON, of_digits(input=[[0]]), 422, "body", "'inputs'"),
    "an unknown input": (JSON, of_digits(inputs={"x": [[0]]}), 422, "inputs.x", ""),
    "logits for a model": (JSON, of_digits(logits=[[1.0]]), 422, "inputs", "`inputs`"),
    "no .npy file": (NPY, b"GIF89a" * 20, 400, "body", "numpy.save"),
    "no .npz file": (NPZ, npy(ROWS), 400, "body", "numpy.savez"),
    "an .npz file cut off": (NPZ, npz(inputs=ROWS)[:-30], 422, "body", ""),
    "more than a body may hold": (NPZ, LARGE_WHEN_UNPACKED, 413, "body", ""),
    "an unused column": (NPZ, npz(inputs=ROWS, uncertainty_own=ROWS[:, 0]), 422, "supplied", ""),
    "another type": ({"Content-Type": "text/plain"}, b"x", 415, "Content-Type", "image/png"),
    "another encoding": ({"Content-Encoding": "gzip"} | NPY, b"x", 415, "Content-Encoding", ""),
    "too many bytes": (NPY, TOO_LARGE, 413, "body", ""),
}


@pytest.mark.parametrize("case", BODIES)
def test_bodies(client, case: str) -> None:
    headers, body, status, place, word = BODIES[case]
    check_problem(send(client, "digits", body, headers), status, place, word)


def test_the_type_that_curl_sends_is_explained(client) -> None:
    form = {"Content-Type": "application/x-www-form-urlencoded"}
    answer = client.post("/predict", content=b"{}", headers=form)
    check_problem(answer, 415, "Content-Type", "-H 'Content-Type: application/json'")


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


@pytest.mark.parametrize("params", [{}, {"calibration": ""}])
def test_the_query_names_the_calibration_of_arrays_and_not_of_json(client, params) -> None:
    for headers, body in ((NPY, npy(ROWS)), (NPZ, npz(inputs=ROWS))):
        answer = client.post("/predict", content=body, headers=headers, params=params)
        check_problem(answer, 422, "query.calibration", "calibration=")
    twice = client.post("/predict", json=of_digits(inputs=[]), params={"calibration": "digits"})
    check_problem(twice, 422, "query.calibration")


@pytest.mark.parametrize(
    ("name", "word"), [("nobody", ""), ("@", ""), ("digits@9", "'digits'"), ("digts", "'digits'")]
)
def test_an_unknown_calibration(client, name: str, word: str) -> None:
    check_problem(send(client, name, npy(ROWS), NPY), 404, "calibration", word)
    body = {"calibration": name, "inputs": []}
    check_problem(client.post("/predict", json=body), 404, "calibration", word)
    assert client.get(f"/calibrations/{name}").status_code == 404


def test_a_type_that_is_not_offered(client) -> None:
    answer = send(client, "digits", npy(ROWS), NPY | {"Accept": "application/x-npy"})
    assert answer.status_code == 406
    assert "application/x-npz" in answer.json()["detail"]


TENSOR = in_json("inputs", ROWS)
HEAD = json.dumps({"inputs": [in_bytes("inputs", ROWS)]}).encode()
OIP_BODIES = {
    "no JSON": (b"{", "body"),
    "another name": ({"inputs": [TENSOR | {"name": "pixels"}]}, "inputs.pixels"),
    "another shape": ({"inputs": [TENSOR | {"shape": [4, 64]}]}, "256"),
    "bytes that are not there": (HEAD, "768"),
    "an unknown output": ({"inputs": [TENSOR], "outputs": [{"name": "logits"}]}, "outputs.logits"),
}


@pytest.mark.parametrize("case", OIP_BODIES)
def test_oip_bodies(client, case: str) -> None:
    request, word = OIP_BODIES[case]
    check_oip_error(infer(client, "digits", request), 400, word)


@pytest.mark.parametrize(
    ("body", "length", "word"),
    [
        (HEAD + ROWS.tobytes(), f"+{len(HEAD)}", LENGTH),
        (HEAD + ROWS.tobytes() + b"1234", str(len(HEAD)), "4 bytes"),
        (ROWS.tobytes(), "0", "256"),
    ],
    ids=["a length with a sign", "more bytes", "three rows without JSON"],
)
def test_oip_bytes(client, body: bytes, length: str, word: str) -> None:
    check_oip_error(infer(client, "digits", body, **{LENGTH: length}), 400, word)


def test_oip_encodings(client) -> None:
    packed = gzip.compress(json.dumps({"inputs": [TENSOR]}).encode())
    for encoding, body, status, word in (
        ("br", packed, 415, "gzip"),
        ("gzip, gzip", packed, 415, "gzip"),
        ("deflate", packed, 400, "deflate"),
        ("gzip", packed[:-9], 400, "whole"),
        ("gzip", gzip.compress(TOO_LARGE), 413, "inflated"),
        ("deflate", zlib.compress(TOO_LARGE), 413, "inflated"),
        ("identity", TOO_LARGE, 413, "33554432"),
    ):
        answer = infer(client, "digits", body, **{"Content-Encoding": encoding})
        check_oip_error(answer, status, word)


def test_unknown_paths(client) -> None:
    for path, word in (
        ("nothing", ""),
        ("models/nobody", "nobody"),
        ("models/digits/versions/1.0", "1.0"),
        ("models/%00", ""),
    ):
        check_oip_error(client.get(f"/v2/{path}"), 404, word)
    check_oip_error(client.post("/v2/repository/models/digits/load", json={}), 404)
    check_oip_error(client.get("/v2/models/digits/infer"), 405)
    check_oip_error(infer(client, "nobody", {"inputs": [TENSOR]}), 404, "nobody")
    check_oip_error(client.post("/v2/repository/index", content=b"["), 400, "ready")
    for path in ("/nothing", "/v2x"):
        answer = client.get(path)
        assert answer.status_code == 404
        assert answer.headers["content-type"] == "application/problem+json"

"""Invalid prediction requests get one clear problem, in whatever media type they come.

The decoders' own rules are in tests/child: here each kind of rule meets each media type once.
"""

from dataclasses import dataclass
from typing import Any

import httpx
import numpy as np
import pytest
from request_formats import in_bytes, infer
from running_service import JSON, NPY, NPZ, calibrated, encoded, npy, npz, quick_config, send

ROWS = np.zeros((3, 64), np.float32)
LOGITS = np.eye(4, dtype=np.float32)[np.arange(80) % 4]
OWN = np.zeros(5)

pytestmark = pytest.mark.usefixtures("digits_calibration")


def changed(array: np.ndarray, index: Any, value: float) -> np.ndarray:
    array = array.copy()
    array[index] = value
    return array


def assert_problem(answer, status: int, place: str, says: str) -> None:
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    problem = answer.json()
    (violation,) = problem["errors"]
    assert violation["location"] == place, problem
    assert says in problem["detail"], problem
    assert problem["type"] != "urn:howsure:problem:invalid-dataset"
    assert len(problem["detail"]) < 600


# How an array is sent, by media type.
WRITERS = {
    "lists": lambda array: (JSON, {"calibration": "digits", "inputs": array.tolist()}),
    "base64": lambda array: (JSON, {"calibration": "digits", "inputs": encoded(array)}),
    "npy": lambda array: (NPY, npy(array)),
    "npz": lambda array: (NPZ, npz(inputs=array)),
}
BINARY = ("base64", "npy", "npz")


@dataclass(frozen=True)
class Rule:
    """An array that breaks a rule, and where and how the problem is reported."""

    array: np.ndarray
    place: str
    says: str
    status: int = 422
    oip_status: int = 400
    media_types: tuple[str, ...] = tuple(WRITERS)


RULES = {
    "another width": Rule(ROWS[:, 1:], "inputs.inputs", "64"),
    "another rank": Rule(ROWS[None], "inputs.inputs", "64"),
    "too many rows": Rule(np.zeros((10_001, 1), np.uint8), "inputs", "10000 rows", 413, 413),
    "NaN": Rule(changed(ROWS, (2, 5), np.nan), "inputs[2][5]", "NaN", media_types=BINARY),
    "beyond float32": Rule(changed(ROWS.astype(float), (2, 5), 1e39), "inputs[2][5]", "32-bit"),
    "a truth value of 7": Rule(
        np.full((1, 64), 7, "u1").view("?"), "inputs[0][0]", "true or", media_types=BINARY
    ),
}
# A decoder that counts rows before it knows the input names the part of the body.
COUNTED_AT = {"npy": "body", "npz": "body.inputs"}


@pytest.mark.parametrize("rule", RULES)
def test_arrays_that_break_a_rule(client, rule: str) -> None:
    found = RULES[rule]
    for name in found.media_types:
        headers, body = WRITERS[name](found.array)
        place = COUNTED_AT.get(name, found.place) if found.status == 413 else found.place
        assert_problem(send(client, "digits", body, headers), found.status, place, found.says)
    datatype = {"b": "BOOL", "u": "UINT8", "f": f"FP{8 * found.array.itemsize}"}
    tensor = in_bytes("inputs", found.array, datatype[found.array.dtype.kind])
    answer = infer(client, "digits", {"inputs": [tensor]}, found.array.tobytes())
    assert answer.status_code == found.oip_status, answer.text
    assert found.says in answer.json()["error"]


def of_digits(**rows: Any) -> dict[str, Any]:
    return {"calibration": "digits", **rows}


def tensor(**changes: Any) -> dict[str, Any]:
    return of_digits(inputs=encoded(ROWS) | changes)


PICKLED = npz(inputs=np.array([{}], object))
LARGE_WHEN_UNPACKED = npz(compressed=True, inputs=np.zeros((9_000, 64, 64), np.uint8))
BODIES = {
    "no JSON": (JSON, b"{", 400, "body", "JSON"),
    "a picture as JSON": (
        JSON,
        b"\xff\xd8\xff\xe0",
        400,
        "body",
        "got a single picture; send it with its own Content-Type",
    ),
    "a misspelt field": (JSON, of_digits(input=[[0]]), 422, "body", "did you mean 'inputs'?"),
    "an unknown field": (
        JSON,
        of_digits(name="digits"),
        422,
        "body",
        "known fields: calibration, inputs",
    ),
    "an unknown input": (JSON, of_digits(inputs={"x": [[0]]}), 422, "inputs.x", "no such input"),
    "no inputs": (JSON, of_digits(inputs={}), 422, "inputs", "at least one array"),
    "logits for a model": (JSON, of_digits(logits=[[1.0]]), 422, "inputs", "send its `inputs`"),
    "fewer bytes than claimed": (JSON, tensor(b64=""), 422, "inputs.b64", "768 bytes"),
    "no base64": (JSON, tensor(b64="AAA"), 422, "inputs", "base64"),
    "a dtype of numpy's": (JSON, tensor(dtype="<f4"), 422, "inputs", "dtype"),
    "a shape of nothing": (JSON, tensor(b64="", shape=[3, 0]), 422, "inputs", "at least one"),
    "no .npy file": (NPY, b"GIF89a" * 20, 400, "body", "numpy.save"),
    "an .npy file cut off": (NPY, npy(ROWS)[:-1], 422, "body", "claims"),
    "an .npy file of text": (NPY, npy(np.array([["a"]])), 422, "body", "text"),
    "no .npz file": (NPZ, npy(ROWS), 400, "body", "numpy.savez"),
    "an .npz file cut off": (NPZ, npz(inputs=ROWS)[:-30], 422, "body", ""),
    "an .npz file of nothing": (NPZ, npz(), 422, "body", "at least one array"),
    "an unknown member": (NPZ, npz(labels=ROWS), 422, "inputs.labels", "no such input"),
    "a pickled member": (NPZ, PICKLED, 422, "body.inputs", "unpickled"),
    "more than a body may hold": (NPZ, LARGE_WHEN_UNPACKED, 413, "body", "bytes when unpacked"),
    "an unused column": (
        NPZ,
        npz(inputs=ROWS, uncertainty_own=OWN[:3]),
        422,
        "supplied",
        "no event",
    ),
}


@pytest.mark.parametrize("case", BODIES)
def test_bodies_that_break_a_rule(client, case: str) -> None:
    headers, body, status, place, says = BODIES[case]
    assert_problem(send(client, "digits", body, headers), status, place, says)


@pytest.mark.parametrize(
    ("status", "place", "headers", "content"),
    [
        (415, "Content-Type", {"Content-Type": "text/plain"}, b"x"),
        (415, "Content-Type", {"Content-Type": "image/gif"}, b"x"),
        (415, "Content-Encoding", {"Content-Encoding": "gzip"}, b"x"),
        (413, "body", {}, b" " * (33 * 1024**2)),
    ],
)
def test_heads(client, status: int, place: str, headers: dict[str, str], content: bytes) -> None:
    answer = client.post("/predict", content=content, headers=headers)
    assert_problem(answer, status, place, "")
    if place == "Content-Type":
        for known in ("application/json", "image/jpeg", "image/png", "multipart/form-data"):
            assert known in answer.json()["detail"]


def test_a_body_of_curl_without_its_type_is_told_the_header(client) -> None:
    answer = client.post("/predict", data={"calibration": "digits"})
    assert answer.status_code == httpx.codes.UNSUPPORTED_MEDIA_TYPE
    assert "write -H 'Content-Type: application/json'" in answer.json()["detail"]


@pytest.fixture(scope="module")
def outputs(client) -> None:
    measures = {"measures": ["entropy", "supplied:own"], "serve": {"1": "supplied:own"}}
    arrays = {"logits": LOGITS, "labels": np.arange(80) % 3, "uncertainty_own": np.arange(80) / 80}
    calibrated(client, quick_config(name="outputs", **measures), calibration=npz(**arrays))


ROW_OF_INF = changed(LOGITS[:5], (0, 1), -np.inf)
# The kind of array, its rows, the supplied uncertainties, and where and how that is reported.
OUTPUTS = {
    "inputs": ("inputs", LOGITS[:5], OWN, "inputs", "send its `logits`"),
    "too few classes": ("logits", LOGITS[:5, :3], OWN, "logits", "[rows, 4]"),
    "booleans": ("logits", LOGITS[:5] > 0, OWN, "logits", "booleans"),
    "no distribution": ("probabilities", LOGITS[:5] * 2, OWN, "probabilities[0]", "sum"),
    "a distribution": ("logits", np.full((5, 4), 0.25), OWN, "logits", "as `probabilities`"),
    "infinite": ("logits", ROW_OF_INF, OWN, "logits[0][1]", "-inf"),
    "no column": ("logits", LOGITS[:5], None, "supplied.own", "one a row"),
    "a short column": ("logits", LOGITS[:5], OWN[:1], "supplied.own", "5 numbers"),
    "NaN in a column": ("logits", LOGITS[:5], changed(OWN, 4, np.nan), "supplied.own[4]", "NaN"),
}


@pytest.mark.usefixtures("outputs")
@pytest.mark.parametrize("case", OUTPUTS)
def test_outputs_that_break_a_rule(client, case: str) -> None:
    kind, rows, own, place, says = OUTPUTS[case]
    supplied = {} if own is None else {"uncertainty_own": own}
    archive = npz(**{kind: rows}, **supplied)
    assert_problem(send(client, "outputs", archive, NPZ), 422, place, says)


@pytest.mark.parametrize("params", [{}, {"calibration": ""}])
def test_the_query_names_the_calibration_of_arrays_and_not_of_json(client, params) -> None:
    for headers, body in ((NPY, npy(ROWS)), (NPZ, npz(inputs=ROWS))):
        answer = client.post("/predict", content=body, headers=headers, params=params)
        assert_problem(answer, 422, "query.calibration", "calibration=")
    in_json = of_digits(inputs=ROWS.tolist())
    answer = client.post("/predict", json=in_json, params={"calibration": "digits"})
    assert_problem(answer, 422, "query.calibration", "leave")


@pytest.mark.parametrize("name", ["nobody", "digits@9", "@"])
def test_an_unknown_calibration(client, name: str) -> None:
    assert send(client, name, npy(ROWS), NPY).status_code == 404
    in_json = {"calibration": name, "inputs": []}
    assert_problem(client.post("/predict", json=in_json), 404, "calibration", "")


@pytest.mark.parametrize("name", ["digts", "digits@9", "Digits"])
def test_a_misspelt_calibration(client, name: str) -> None:
    for answer in (send(client, name, npy(ROWS), NPY), client.get(f"/calibrations/{name}")):
        assert_problem(answer, 404, "calibration", "did you mean 'digits'?")


def test_an_answer_that_is_not_offered(client) -> None:
    answer = send(client, "digits", npy(ROWS), NPY | {"Accept": "application/x-npy"})
    assert answer.status_code == 406
    assert "application/x-npz" in answer.json()["detail"]

"""Invalid prediction requests: one clear problem each.

The values and shapes of JSON and headers of arrays are in tests/hostile.
"""

import base64
import io
import json
import zipfile
from typing import Any

import numpy as np
import pytest
from dataset_files import npy_claim
from predict_bodies import NPY, NPZ, encoded, npy, npz, send
from uploads import calibrated, quick_config

ROWS = np.zeros((3, 64), np.float32)
LOGITS = np.eye(4, dtype=np.float32)[np.arange(80) % 4]


def with_value(value: float, dtype: str = "float32") -> np.ndarray:
    rows = ROWS.astype(dtype)
    rows[2, 5] = value
    return rows


def members(method: int = zipfile.ZIP_STORED, **files: bytes) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", method) as archive:
        for name, content in files.items():
            archive.writestr(f"{name}.npy", content)
    return packed.getvalue()


def pickled() -> bytes:
    packed = io.BytesIO()
    np.save(packed, np.array([{}], object), allow_pickle=True)
    return packed.getvalue()


pytestmark = pytest.mark.usefixtures("digits_calibration")

NPY_BODIES = [
    ("empty", 400, "body", "numpy.save", b""),
    ("another file", 400, "body", "numpy.save", b"GIF89a" * 20),
    ("an archive", 400, "body", "numpy.save", npz(inputs=ROWS)),
    ("too few bytes", 422, "body", "claims", npy(ROWS)[:-1]),
    ("too many bytes", 422, "body", "claims", npy(ROWS) + b"\0"),
    ("text", 422, "body", "text", npy(np.array([["a"]]))),
    ("complex numbers", 422, "body", "complex", npy(ROWS.astype(complex))),
    ("records", 422, "body", "records", npy(np.zeros(3, [("a", "f4")]))),
    ("a scalar", 422, "body", "scalar", npy(np.float32(1))),
    ("no rows", 422, "body", "at least one row", npy(ROWS[:0])),
    ("rows of nothing", 422, "body", "at least one", npy(ROWS[:, :0])),
    ("17 axes", 422, "body", "axes", npy(np.zeros((1,) * 17, np.float32))),
    ("too many rows", 413, "body", "10000 rows", npy(np.zeros((10_001, 64), np.uint8))),
    ("no columns, many times", 422, "body", "shape", npy_claim("<f4", (2, 0, 2**99))),
    ("no columns, often", 422, "body", "at least one", npy_claim("<f4", (2, 0, 2**40))),
    ("a wrong width", 422, "inputs", "64", npy(ROWS[:, 1:])),
    ("a wrong rank", 422, "inputs", "64", npy(ROWS[None])),
    ("NaN", 422, "inputs[2][5]", "nan", npy(with_value(np.nan))),
    ("infinity", 422, "inputs[2][5]", "inf", npy(with_value(-np.inf, "float16"))),
    ("too large a number", 422, "inputs[2][5]", "32-bit", npy(with_value(1e39, "float64"))),
    ("a truth of 7", 422, "inputs[0][0]", "true or", npy(np.full((1, 64), 7, "u1").view("?"))),
]

NPZ_BODIES = [
    ("empty", 400, "body", "numpy.savez", b""),
    ("an .npy array", 400, "body", "numpy.savez", npy(ROWS)),
    ("no arrays", 422, "body", "at least one array", members()),
    ("half an archive", 422, "body", "", npz(inputs=ROWS)[:-30]),
    ("bytes behind", 422, "body", "", npz(inputs=ROWS) + b"\0"),
    ("an unknown array", 422, "inputs.pixels", "no such input", npz(pixels=ROWS)),
    ("labels", 422, "inputs.labels", "no such input", npz(inputs=ROWS, labels=np.arange(3))),
    ("logits for a model", 422, "inputs", "send its `inputs`", npz(logits=ROWS)),
    ("pickled objects", 422, "body.inputs", "unpickled", members(inputs=pickled())),
    ("no .npy inside", 422, "body.inputs", ".npy array", members(inputs=b"x" * 99)),
    ("a longer member", 422, "body.inputs", "claims", members(inputs=npy(ROWS) + b"\0")),
    ("bzip2", 422, "body.inputs", "deflated", members(zipfile.ZIP_BZIP2, inputs=npy(ROWS))),
    ("too many rows", 413, "body.inputs", "rows", npz(inputs=np.zeros((10_001, 1), "u1"))),
    (
        "more than a body may hold",
        413,
        "body",
        "bytes when unpacked",
        npz(compressed=True, inputs=np.zeros((9_000, 64, 64), np.uint8)),
    ),
    ("NaN", 422, "inputs[2][5]", "nan", npz(inputs=with_value(np.nan))),
    (
        "a column nobody asked for",
        422,
        "supplied",
        "no event",
        npz(inputs=ROWS, uncertainty_own=np.zeros(3)),
    ),
    ("a column without name", 422, "body", "", npz(inputs=ROWS, uncertainty_=np.zeros(3))),
]

GOOD = encoded(ROWS)
TEXT = GOOD["b64"]
TENSORS: list[tuple[str, int, str, str, Any]] = [
    ("no bytes", 422, "inputs.b64", "768 bytes", GOOD | {"b64": ""}),
    ("no padding", 422, "inputs", "base64", GOOD | {"b64": "AAA"}),
    ("line breaks", 422, "inputs", "base64", GOOD | {"b64": TEXT[:76] + "\n" + TEXT[77:]}),
    ("another alphabet", 422, "inputs", "base64", GOOD | {"b64": "_" + TEXT[1:]}),
    ("no dtype", 422, "inputs", "dtype", {"b64": TEXT, "shape": [3, 64]}),
    ("no shape", 422, "inputs", "shape", {"b64": TEXT, "dtype": "float32"}),
    ("a dtype of numpy's", 422, "inputs", "dtype", GOOD | {"dtype": "<f4"}),
    ("a shape of floats", 422, "inputs", "shape", GOOD | {"shape": [3.5, 64]}),
    ("a shape of nothing", 422, "inputs", "at least one", GOOD | {"b64": "", "shape": [3, 0]}),
    ("no axes", 422, "inputs", "axes", encoded(np.float32(1).reshape(()))),
    ("a wrong width", 422, "inputs", "64", encoded(ROWS[:, 1:])),
    ("an unknown input", 422, "inputs.x", "no such input", {"x": encoded(ROWS)}),
    ("nothing", 422, "inputs", "at least one array", {}),
    ("NaN by name", 422, "inputs[2][5]", "nan", {"inputs": encoded(with_value(np.nan))}),
    ("too many lists", 413, "inputs", "rows", [[0]] * 10_001),
]


def assert_problem(answer, status: int, place: str, says: str) -> None:
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    problem = answer.json()
    assert len(problem["errors"]) == 1
    location = problem["errors"][0]["location"]
    assert location == place or (
        place in ("inputs", "inputs[0]") and location.startswith("inputs")
    ), problem
    assert says in problem["detail"], problem
    assert problem["type"] != "urn:howsure:problem:invalid-dataset"
    assert len(problem["detail"]) < 600


def named(cases: list) -> dict[str, Any]:
    return {"argvalues": [case[1:] for case in cases], "ids": [case[0] for case in cases]}


def row() -> list[float]:
    return [0.0] * 64


JSON_BODIES = [
    ("no JSON", 400, "body", b"{"),
    ("an unknown name", 404, "calibration", {"calibration": "nobody", "inputs": [row()]}),
    ("an unknown version", 404, "calibration", {"calibration": "digits@99", "inputs": [row()]}),
    ("a wrong width", 422, "inputs", {"calibration": "digits", "inputs": [row()[:63]]}),
    ("a wrong rank", 422, "inputs", {"calibration": "digits", "inputs": [[row()]]}),
    ("an unknown input", 422, "inputs.x", {"calibration": "digits", "inputs": {"x": [row()]}}),
    ("logits for a model", 422, "inputs", {"calibration": "digits", "logits": [[1.0] * 10]}),
]


@pytest.mark.parametrize(("status", "place", "body"), **named(JSON_BODIES))
def test_json(client, status: int, place: str, body: Any) -> None:
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    answer = client.post("/predict", content=content, headers={"Content-Type": "application/json"})
    assert_problem(answer, status, place, "")


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


@pytest.mark.parametrize(("status", "place", "says", "body"), **named(NPY_BODIES))
def test_npy(client, status: int, place: str, says: str, body: bytes) -> None:
    assert_problem(send(client, "digits", body, NPY), status, place, says)


@pytest.mark.parametrize(("status", "place", "says", "body"), **named(NPZ_BODIES))
def test_npz(client, status: int, place: str, says: str, body: bytes) -> None:
    assert_problem(send(client, "digits", body, NPZ), status, place, says)


@pytest.mark.parametrize(("status", "place", "says", "inputs"), **named(TENSORS))
def test_tensors_in_json(client, status: int, place: str, says: str, inputs: Any) -> None:
    answer = client.post("/predict", json={"calibration": "digits", "inputs": inputs})

    assert_problem(answer, status, place, says)


def test_the_tensor_that_is_spoilt_above_is_good(client) -> None:
    for inputs in (GOOD, {"inputs": GOOD}):
        body = {"calibration": "digits", "inputs": inputs}
        assert client.post("/predict", json=body).status_code == 200
    assert base64.b64decode(TEXT) == ROWS.tobytes()


@pytest.fixture(scope="module")
def outputs(client) -> None:
    measures = {"measures": ["entropy", "supplied:own"], "serve": {"1": "supplied:own"}}
    arrays = {"logits": LOGITS, "labels": np.arange(80) % 3, "uncertainty_own": np.arange(80) / 80}
    calibrated(client, quick_config(name="outputs", **measures), calibration=npz(**arrays))


OWN = {"uncertainty_own": np.zeros(5)}
OUTPUTS = [
    ("inputs", 422, "inputs", "send its `logits`", npz(inputs=LOGITS[:5], **OWN)),
    ("both", 422, "inputs", "", npz(logits=LOGITS[:5], probabilities=LOGITS[:5], **OWN)),
    ("no scores", 422, "inputs", "send its `logits`", npz(**OWN)),
    ("too few classes", 422, "logits", "[rows, 4]", npz(logits=LOGITS[:5, :3], **OWN)),
    ("booleans", 422, "logits", "booleans", npz(logits=LOGITS[:5] > 0, **OWN)),
    ("no distribution", 422, "probabilities[0]", "sum", npz(probabilities=LOGITS[:5] * 2, **OWN)),
    (
        "infinite",
        422,
        "logits[0][1]",
        "-inf",
        npz(logits=np.where(LOGITS[:5] > 0, 0, -np.inf), **OWN),
    ),
    ("no column", 422, "supplied.own", "one a row", npz(logits=LOGITS[:5])),
    (
        "a short column",
        422,
        "supplied.own",
        "5 numbers",
        npz(logits=LOGITS[:5], uncertainty_own=[1.0]),
    ),
    (
        "a column of NaN",
        422,
        "supplied.own[4]",
        "nan",
        npz(logits=LOGITS[:5], uncertainty_own=[0, 1, 2, 3, np.nan]),
    ),
]


@pytest.mark.usefixtures("outputs")
@pytest.mark.parametrize(("status", "place", "says", "body"), **named(OUTPUTS))
def test_outputs(client, status: int, place: str, says: str, body: bytes) -> None:
    assert_problem(send(client, "outputs", body, NPZ), status, place, says)


@pytest.mark.parametrize(("headers", "body"), [(NPY, npy(ROWS)), (NPZ, npz(inputs=ROWS))])
@pytest.mark.parametrize("params", [{}, {"calibration": ""}])
def test_arrays_name_no_calibration(client, headers, body: bytes, params) -> None:
    answer = client.post("/predict", content=body, headers=headers, params=params)

    assert_problem(answer, 422, "query.calibration", "calibration=")


def test_json_names_the_calibration_itself(client) -> None:
    body = {"calibration": "digits", "inputs": ROWS.tolist()}

    answer = client.post("/predict", json=body, params={"calibration": "digits"})

    assert_problem(answer, 422, "query.calibration", "leave")


@pytest.mark.parametrize(("name", "status"), [("nobody", 404), ("digits@9", 404), ("@", 404)])
def test_an_unknown_calibration(client, name: str, status: int) -> None:
    assert send(client, name, npy(ROWS), NPY).status_code == status


def test_an_answer_that_is_not_offered(client) -> None:
    answer = send(client, "digits", npy(ROWS), NPY | {"Accept": "application/x-npy"})

    assert answer.status_code == 406
    assert "application/x-npz" in answer.json()["detail"]

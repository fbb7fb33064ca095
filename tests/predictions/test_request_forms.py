"""The same rows get the same answers in every form that a request may have."""

import io
import json

import httpx
import numpy as np
import pytest
from dataset_files import npy_claim, npy_header
from onnx import TensorProto
from request_formats import (
    LENGTH,
    declared,
    faults,
    in_bytes,
    in_json,
    infer,
    outputs_of,
    said_of_rows,
)
from runner_models import from_integers, linear, rows, softmax_of_two, weights
from running_service import (
    JSON,
    NPY,
    NPZ,
    QUICK,
    calibrated,
    digits,
    encoded,
    npy,
    npz,
    quick_config,
    send,
)
from scipy.special import softmax

PIXELS = np.load(io.BytesIO(digits("evaluation.npz")))["inputs"][:120]
rng = np.random.default_rng(5)


def answered(answer: httpx.Response) -> dict:
    assert answer.status_code == httpx.codes.OK, answer.text
    return answer.json()


def as_json(client: httpx.Client, **body) -> dict:
    return answered(client.post("/predict", json=body))


@pytest.fixture(scope="module")
def two_inputs(client) -> dict[str, np.ndarray]:
    """Calibrate a model of two inputs, and return rows for it."""
    matrix = weights()
    left, right = rows(400, seed=3), rows(400, seed=4)
    chances = softmax(((left + right) @ matrix).astype(float), axis=1)
    labels = np.array([rng.choice(10, p=p) for p in chances])
    calibrated(
        client,
        '{"name": "two", "bins": 5}',
        model=softmax_of_two(matrix).SerializeToString(),
        calibration=npz(left=left, right=right, labels=labels),
    )
    return {"left": left[:20], "right": right[:20]}


def test_several_inputs_by_name(client, two_inputs) -> None:
    left, right = two_inputs["left"], two_inputs["right"]
    lists = {"left": left.tolist(), "right": right.tolist()}
    expected = as_json(client, calibration="two", inputs=lists)

    assert answered(send(client, "two", npz(**two_inputs), NPZ)) == expected
    mixed = {"left": encoded(left), "right": lists["right"]}
    assert as_json(client, calibration="two", inputs=mixed) == expected
    assert [name for name, _, _ in declared(client, "two")] == ["left", "right"]
    tensors = {"inputs": [in_json("right", right), in_bytes("left", left)]}
    answer = infer(client, "two", tensors, left.tobytes())
    assert said_of_rows(answer)["class"] == [row["class"] for row in expected["predictions"]]
    alone = infer(client, "two", left[:1].tobytes(), **{LENGTH: "0"})
    assert (alone.status_code, "left, right" in alone.json()["error"]) == (400, True)


@pytest.mark.parametrize(
    ("change", "place", "says"),
    [
        ({"right": None}, "inputs.right", "missing"),
        ({"right": rows(19)}, "inputs", "same number of rows"),
        ({"middle": rows(20)}, "inputs.middle", "'left', 'right'"),
        ({"left": None, "right": None, "inputs": rows(20)}, "inputs", "name them"),
        ({"right": np.full((20, 6), np.nan)}, "inputs.right[0][0]", "NaN"),
    ],
)
def test_wrong_inputs_by_name(client, two_inputs, change: dict, place: str, says: str) -> None:
    sent = {name: a for name, a in (two_inputs | change).items() if a is not None}
    in_json = {"calibration": "two", "inputs": {name: encoded(a) for name, a in sent.items()}}

    for answer in (send(client, "two", npz(**sent), NPZ), client.post("/predict", json=in_json)):
        assert answer.status_code == 422, answer.text
        (violation,) = answer.json()["errors"]
        assert violation["location"] == place
        assert says in violation["message"]


@pytest.mark.usefixtures("digits_calibration")
def test_large_bodies_name_their_calibration_first_or_last(client) -> None:
    spaces = " " * 2**20
    inputs = f"{json.dumps(PIXELS[:3].tolist())[:-1]}{spaces}]"
    expected = as_json(client, calibration="digits", inputs=PIXELS[:3].tolist())

    def sent(text: str) -> httpx.Response:
        return client.post("/predict", content=text, headers=JSON)

    assert answered(sent(f'{{"calibration": "digits", "inputs": {inputs}}}')) == expected
    assert answered(sent(f'{{"inputs": {inputs}, "calibration": "digits"}}')) == expected
    # What looks like a name is compared by the reader of the whole body.
    for text in (
        f'{{"supplied": {{"calibration": "digits"}}, "inputs": {inputs}, "calibration": "other"}}',
        f'{{"inputs": {inputs}, "calibration": "other", "supplied": {{"calibration": "digits"}}}}',
    ):
        assert sent(text).status_code in (httpx.codes.NOT_FOUND, 422)
    between = sent(f'{{"inputs": {inputs}, {spaces}"calibration": "digits"{spaces}}}')
    (violation,) = between.json()["errors"]
    assert violation["location"] == "calibration"
    assert "as the first or the last field" in violation["message"]
    assert "more than 1 MiB; move it there" in violation["message"]


@pytest.mark.usefixtures("digits_calibration")
def test_numbers_may_begin_anywhere_in_the_body(client) -> None:
    """numpy pads its headers so that numbers begin at multiples of 64; others need not."""
    pixels = PIXELS.astype(np.float64)
    claim = npy_claim("<f8", pixels.shape, values=pixels.tobytes())
    header, values = claim[10 : -pixels.nbytes], claim[-pixels.nbytes :]

    found = answered(send(client, "digits", npy_header(header + b" ") + values, NPY))

    assert found == as_json(client, calibration="digits", inputs=pixels.tolist())


def test_the_only_input_may_be_called_inputs(client) -> None:
    matrix = weights(seed=2)
    pixels = rows(300, seed=8)
    calibrated(
        client,
        '{"name": "renamed", "bins": 3}',
        model=linear(matrix).SerializeToString(),
        calibration=npz(inputs=pixels, labels=(pixels @ matrix).argmax(axis=1)),
    )
    expected = as_json(client, calibration="renamed", inputs=pixels.tolist())

    for name in ("inputs", "x"):
        assert answered(send(client, "renamed", npz(**{name: pixels}), NPZ)) == expected
        assert as_json(client, calibration="renamed", inputs={name: pixels.tolist()}) == expected


@pytest.mark.parametrize("kind", ["logits", "probabilities"])
def test_outputs_with_a_supplied_column(client, kind: str) -> None:
    logits = rng.normal(size=(300, 4)).astype(np.float32) * 3
    scores = logits if kind == "logits" else softmax(logits, axis=1)
    own = rng.random(300).astype(np.float32)
    config = {"name": kind, "measures": ["supplied:own"], "serve": {"1": "supplied:own"}}
    archive = npz(**{kind: scores}, uncertainty_own=own)
    labelled = npz(**{kind: scores}, uncertainty_own=own, labels=logits.argmax(axis=1))
    calibrated(client, QUICK | config, calibration=labelled)
    assert declared(client, kind) == [(kind, "FP32", [-1, 4]), ("uncertainty_own", "FP32", [-1])]
    assert client.get(f"/v2/models/{kind}").json()["platform"] == "howsure"

    lists = {"calibration": kind, kind: scores.tolist(), "supplied": {"own": own.tolist()}}
    expected = as_json(client, **lists)
    assert answered(send(client, kind, archive, NPZ)) == expected
    bytes_of = {kind: encoded(scores), "supplied": {"own": encoded(own)}}
    assert as_json(client, **(lists | bytes_of)) == expected
    wide = scores.astype(np.float64)
    tensors = {"inputs": [in_json("uncertainty_own", own), in_bytes(kind, wide, "FP64")]}
    answer = outputs_of(infer(client, kind, tensors, wide.tobytes()))
    events = [row["top1"] for row in expected["predictions"]]
    assert answer["top1_bin"].tolist() == [event["bin"] for event in events]
    np.testing.assert_array_equal(answer["top1_uncertainty"], own)
    missing = infer(client, kind, {"inputs": [in_bytes(kind, wide, "FP64")]}, wide.tobytes())
    assert (missing.status_code, "supplied.own" in missing.json()["error"]) == (400, True)


def test_integers(client) -> None:
    matrix = weights()
    pixels = rng.integers(0, 256, (400, len(matrix))).astype(np.uint8)
    labels = (pixels @ matrix).argmax(1)
    calibrated(
        client,
        quick_config(name="bytes"),
        model=from_integers(matrix).SerializeToString(),
        calibration=npz(inputs=pixels, labels=labels),
    )
    name, datatype, shape = declared(client, "bytes")[0]

    assert (datatype, shape[0]) == ("UINT8", -1)
    body = {"calibration": "bytes", "inputs": pixels[:5].tolist()}
    expected = said_of_rows(client.post("/predict", json=body))
    for kind, dtype in (("UINT8", np.uint8), ("INT64", np.int64), ("FP32", np.float32)):
        values = pixels[:5].astype(dtype)
        request = {"inputs": [in_bytes(name, values, kind)]}
        assert said_of_rows(infer(client, "bytes", request, values.tobytes())) == expected
    alone = infer(client, "bytes", pixels[3].tobytes(), **{LENGTH: "0"})
    assert said_of_rows(alone) == {key: values[3:4] for key, values in expected.items()}
    beyond = infer(client, "bytes", {"inputs": [in_json(name, values + 256, "FP32")]})
    assert beyond.status_code == 400
    assert "from 0 to 255" in beyond.json()["error"]


def test_floats_of_another_width(client) -> None:
    matrix, inputs = weights().astype(np.float16), rows(400).astype(np.float16)
    labels = (inputs.astype(float) @ matrix.astype(float)).argmax(1)
    model = linear(matrix, batch=4, element_type=TensorProto.FLOAT16, dtype=np.float16)
    calibrated(
        client,
        quick_config(name="fp16"),
        model=model.SerializeToString(),
        calibration=npz(inputs=inputs, labels=labels),
    )
    name, *found = declared(client, "fp16")[0]

    assert found == ["FP16", [-1, inputs.shape[1]]], "batches of 4 are the service's own affair"
    request = {"inputs": [in_bytes(name, inputs[:5], "FP16")]}
    answer = infer(client, "fp16", request, inputs[:5].tobytes())
    expected = as_json(client, calibration="fp16", inputs=inputs[:5].tolist())
    assert said_of_rows(answer)["class"] == [row["class"] for row in expected["predictions"]]


def test_answers_as_arrays(client, digits_calibration) -> None:
    accept = {"Accept": "application/x-npz"}
    body = {"calibration": "digits", "inputs": PIXELS.tolist()}
    predictions = as_json(client, **body)["predictions"]

    said = f"id={digits_calibration['id']}; name=digits; version=1"
    for headers, content in ((JSON | accept, body), (NPY | accept, npy(PIXELS))):
        answer = send(client, "digits", content, headers)
        assert answer.status_code == httpx.codes.OK, answer.text
        assert answer.headers["content-type"] == "application/x-npz"
        assert answer.headers["Howsure-Calibration"] == said
        with np.load(io.BytesIO(answer.content), allow_pickle=False) as found:
            assert found["class"].tolist() == [row["class"] for row in predictions]


@pytest.mark.usefixtures("digits_calibration")
def test_what_is_documented(client) -> None:
    document = client.get("/openapi.json").json()
    operation = document["paths"]["/predict"]["post"]

    for body in ([], PIXELS[:2].tolist(), encoded(PIXELS[:2]), {"inputs": encoded(PIXELS[:2])}):
        asked = {"calibration": "digits", "inputs": body}
        schema = operation["requestBody"]["content"]["application/json"]["schema"]
        assert faults(asked, schema, document) == []
    bodies = operation["requestBody"]["content"].keys()
    arrays = {"application/json", "application/x-npy", "application/x-npz"}
    pictures = {"image/jpeg", "image/png", "image/webp", "multipart/form-data"}
    files = {"application/zip", "application/x-tar", "text/csv", "application/vnd.apache.parquet"}
    assert bodies == arrays | pictures | files
    for media_type in bodies:
        answer = send(client, "digits", b"no such body", {"Content-Type": media_type})
        assert answer.status_code in (400, 422), "known, if it is not what it says"
    answers = operation["responses"]["200"]["content"].keys()
    assert answers == {"application/json", "application/x-npz"}

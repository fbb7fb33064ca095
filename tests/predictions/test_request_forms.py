"""The same rows get the same answers in every form that a request may have."""

import io
import json
from typing import Any

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
from running_service import JSON, NPY, NPZ, calibrated, digits, encoded, npy, npz, send
from scipy.special import softmax

PIXELS = np.load(io.BytesIO(digits("evaluation.npz")))["inputs"][:120]
rng = np.random.default_rng(5)


def answered(answer: httpx.Response) -> dict:
    assert answer.status_code == httpx.codes.OK, answer.text
    return answer.json()


def as_json(client: httpx.Client, calibration: str, **body: Any) -> dict:
    return answered(client.post("/predict", json={"calibration": calibration, **body}))


def classes_of(body: dict) -> list[int]:
    return [row["class"] for row in body["predictions"]]


def test_several_inputs_by_name(client) -> None:
    left, right = rows(200, seed=3), rows(200, seed=4)
    model = softmax_of_two(weights()).SerializeToString()
    labels = ((left + right) @ weights()).argmax(axis=1)
    archive = npz(left=left, right=right, labels=labels)
    calibrated(client, {"name": "two"}, model=model, calibration=archive)
    left, right = left[:20], right[:20]
    lists = {"left": left.tolist(), "right": right.tolist()}
    expected = as_json(client, "two", inputs=lists)

    assert answered(send(client, "two", npz(left=left, right=right), NPZ)) == expected
    assert as_json(client, "two", inputs=lists | {"left": encoded(left)}) == expected
    assert [name for name, _, _ in declared(client, "two")] == ["left", "right"]
    tensors = {"inputs": [in_json("right", right), in_bytes("left", left)]}
    answer = infer(client, "two", tensors, left.tobytes())
    assert said_of_rows(answer)["class"] == classes_of(expected)
    alone = infer(client, "two", left[:1].tobytes(), **{LENGTH: "0"})
    assert (alone.status_code, "left, right" in alone.json()["error"]) == (400, True)
    for arrays, place in (
        ({"left": left}, "inputs.right"),
        ({"left": left, "right": right[:19]}, "inputs"),
        ({"left": left, "right": right, "middle": right}, "inputs.middle"),
        ({"inputs": right}, "inputs"),
        ({"left": left, "right": np.full((20, 6), np.nan)}, "inputs.right[0][0]"),
    ):
        body = {"inputs": {name: encoded(array) for name, array in arrays.items()}}
        body |= {"calibration": "two"}
        for refused in (send(client, "two", npz(**arrays), NPZ), send(client, "", body, JSON)):
            assert refused.status_code == 422, refused.text
            (violation,) = refused.json()["errors"]
            assert violation["location"] == place


@pytest.mark.usefixtures("digits_calibration")
def test_large_bodies_name_their_calibration_first_or_last(client) -> None:
    spaces = " " * 2**20
    inputs = f"{json.dumps(PIXELS[:3].tolist())[:-1]}{spaces}]"
    expected = as_json(client, "digits", inputs=PIXELS[:3].tolist())

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
    assert "1 MiB" in violation["message"]


@pytest.mark.usefixtures("digits_calibration")
def test_numbers_may_begin_anywhere_in_the_body(client) -> None:
    """numpy pads its headers so that numbers begin at multiples of 64; others need not."""
    pixels = PIXELS.astype(np.float64)
    claim = npy_claim("<f8", pixels.shape, values=pixels.tobytes())
    header, values = claim[10 : -pixels.nbytes], claim[-pixels.nbytes :]
    answer = send(client, "digits", npy_header(header + b" ") + values, NPY)
    assert answered(answer) == as_json(client, "digits", inputs=pixels.tolist())


def test_the_only_input_may_be_called_inputs(client) -> None:
    matrix, pixels = weights(seed=2), rows(200, seed=8)
    archive = npz(inputs=pixels, labels=(pixels @ matrix).argmax(axis=1))
    model = linear(matrix).SerializeToString()
    calibrated(client, {"name": "renamed"}, model=model, calibration=archive)
    expected = as_json(client, "renamed", inputs=pixels.tolist())
    for name in ("inputs", "x"):
        assert answered(send(client, "renamed", npz(**{name: pixels}), NPZ)) == expected
        assert as_json(client, "renamed", inputs={name: pixels.tolist()}) == expected


@pytest.mark.parametrize("kind", ["logits", "probabilities"])
def test_outputs_with_a_supplied_column(client, kind: str) -> None:
    logits = rng.normal(size=(200, 4)).astype(np.float32) * 3
    scores = logits if kind == "logits" else softmax(logits, axis=1)
    own = rng.random(200).astype(np.float32)
    config = {"name": kind, "measures": ["supplied:own"], "serve": {"1": "supplied:own"}}
    archive = {kind: scores, "uncertainty_own": own}
    labelled = npz(**archive, labels=logits.argmax(axis=1))
    calibrated(client, config, calibration=labelled)
    assert declared(client, kind) == [(kind, "FP32", [-1, 4]), ("uncertainty_own", "FP32", [-1])]
    assert client.get(f"/v2/models/{kind}").json()["platform"] == "howsure"

    expected = as_json(client, kind, **{kind: scores.tolist(), "supplied": {"own": own.tolist()}})
    assert answered(send(client, kind, npz(**archive), NPZ)) == expected
    bytes_of = {kind: encoded(scores), "supplied": {"own": encoded(own)}}
    assert as_json(client, kind, **bytes_of) == expected
    wide = scores.astype(np.float64)
    tensors = {"inputs": [in_json("uncertainty_own", own), in_bytes(kind, wide, "FP64")]}
    answer = outputs_of(infer(client, kind, tensors, wide.tobytes()))
    events = [row["top1"] for row in expected["predictions"]]
    assert answer["top1_bin"].tolist() == [event["bin"] for event in events]
    np.testing.assert_array_equal(answer["top1_uncertainty"], own)
    missing = infer(client, kind, {"inputs": tensors["inputs"][1:]}, wide.tobytes())
    assert (missing.status_code, "supplied.own" in missing.json()["error"]) == (400, True)


def test_integers(client) -> None:
    matrix = weights()
    pixels = rng.integers(0, 256, (200, len(matrix))).astype(np.uint8)
    archive = npz(inputs=pixels, labels=(pixels @ matrix).argmax(1))
    model = from_integers(matrix).SerializeToString()
    calibrated(client, {"name": "bytes"}, model=model, calibration=archive)
    ((name, datatype, shape),) = declared(client, "bytes")
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
    assert (beyond.status_code, "255" in beyond.json()["error"]) == (400, True)


def test_floats_of_another_width(client) -> None:
    matrix, inputs = weights().astype(np.float16), rows(200).astype(np.float16)
    archive = npz(inputs=inputs, labels=(inputs.astype(float) @ matrix.astype(float)).argmax(1))
    model = linear(matrix, batch=4, element_type=TensorProto.FLOAT16, dtype=np.float16)
    calibrated(client, {"name": "fp16"}, model=model.SerializeToString(), calibration=archive)
    ((name, *declaration),) = declared(client, "fp16")
    # Batches of 4 are the service's own affair.
    assert declaration == ["FP16", [-1, inputs.shape[1]]]
    request = {"inputs": [in_bytes(name, inputs[:5], "FP16")]}
    answer = infer(client, "fp16", request, inputs[:5].tobytes())
    expected = as_json(client, "fp16", inputs=inputs[:5].tolist())
    assert said_of_rows(answer)["class"] == classes_of(expected)


def test_answers_as_arrays(client, digits_calibration) -> None:
    accept = {"Accept": "application/x-npz"}
    body = {"calibration": "digits", "inputs": PIXELS.tolist()}
    classes = classes_of(as_json(client, **body))
    for headers, content in ((JSON | accept, body), (NPY | accept, npy(PIXELS))):
        answer = send(client, "digits", content, headers)
        assert answer.status_code == httpx.codes.OK, answer.text
        assert answer.headers["content-type"] == "application/x-npz"
        reference = f"id={digits_calibration['id']}; name=digits; version=1"
        assert answer.headers["Howsure-Calibration"] == reference
        with np.load(io.BytesIO(answer.content), allow_pickle=False) as arrays:
            assert arrays["class"].tolist() == classes


@pytest.mark.usefixtures("digits_calibration")
def test_what_is_documented(client) -> None:
    document = client.get("/openapi.json").json()
    operation = document["paths"]["/predict"]["post"]
    bodies = operation["requestBody"]["content"]
    schema = bodies["application/json"]["schema"]
    for inputs in ([], PIXELS[:2].tolist(), encoded(PIXELS[:2]), {"inputs": encoded(PIXELS[:2])}):
        assert faults({"calibration": "digits", "inputs": inputs}, schema, document) == []
    arrays = {"application/json", "application/x-npy", "application/x-npz"}
    pictures = {"image/jpeg", "image/png", "image/webp", "multipart/form-data"}
    files = {"application/zip", "application/x-tar", "text/csv", "application/vnd.apache.parquet"}
    assert bodies.keys() == arrays | pictures | files
    for media_type in bodies:
        answer = send(client, "digits", b"no such body", {"Content-Type": media_type})
        # Known, if it is not what it says.
        assert answer.status_code in (400, 422)
    answers = operation["responses"]["200"]["content"].keys()
    assert answers == {"application/json", "application/x-npz"}

"""The same rows get the same answers in every form that a request may have, alone and together."""

import json
import os
import random
import signal
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import numpy as np
import pytest
import request_formats as forms
from bins_documents import digits_set
from dataset_files import npy_claim, npy_header
from job_workspaces import calibrate as queued
from job_workspaces import logits_set, predictor_of, succeed, workspace_on
from request_formats import (
    FORMS,
    LENGTH,
    REFUSED,
    Sent,
    declared,
    in_bytes,
    in_json,
    infer,
    outputs_of,
    said,
    said_of_rows,
)
from runner_children import wait_until
from runner_models import from_integers, rows, softmax_of_two, weights
from running_service import (
    DIGITS_PARTS,
    JSON,
    NPY,
    NPZ,
    calibrate,
    calibrated,
    encoded,
    evaluate,
    npy,
    npz,
    quick_config,
    send,
)
from scipy.special import softmax

OK, UNPROCESSABLE = httpx.codes.OK, httpx.codes.UNPROCESSABLE_ENTITY
PIXELS = digits_set()["inputs"][:120]
OWN = {"measures": ["supplied:own"], "serve": {"1": "supplied:own"}}
rng = np.random.default_rng(5)


def answered(answer: httpx.Response) -> dict:
    assert answer.status_code == OK, answer.text
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
    tensors = {"inputs": [in_json("right", right), in_bytes("left", left)]}
    answer = infer(client, "two", tensors, left.tobytes())
    assert said_of_rows(answer)["class"] == classes_of(expected)
    alone = infer(client, "two", left[:1].tobytes(), **{LENGTH: "0"})
    assert (alone.status_code, "left, right" in alone.json()["error"]) == (400, True)
    for arrays, place in (
        ({"left": left, "right": right[:19]}, "inputs"),
        ({"left": left, "right": np.full((20, 6), np.nan)}, "inputs.right[0][0]"),
    ):
        refused = send(client, "two", npz(**arrays), NPZ)
        assert refused.status_code == UNPROCESSABLE, refused.text
        assert [error["location"] for error in refused.json()["errors"]] == [place]


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
    inside = '"supplied": {"calibration": "digits"}'
    for text in (
        f'{{{inside}, "inputs": {inputs}, "calibration": "other"}}',
        f'{{"inputs": {inputs}, "calibration": "other", {inside}}}',
    ):
        assert sent(text).status_code in (httpx.codes.NOT_FOUND, UNPROCESSABLE)
    between = sent(f'{{"inputs": {inputs}, {spaces}"calibration": "digits"{spaces}}}')
    assert [error["location"] for error in between.json()["errors"]] == ["calibration"]


@pytest.mark.usefixtures("digits_calibration")
def test_numbers_may_begin_anywhere_in_the_body(client) -> None:
    """numpy pads its headers so that numbers begin at multiples of 64; others need not."""
    pixels = PIXELS.astype(np.float64)
    claim = npy_claim("<f8", pixels.shape, values=pixels.tobytes())
    header, values = claim[10 : -pixels.nbytes], claim[-pixels.nbytes :]
    answer = send(client, "digits", npy_header(header + b" ") + values, NPY)
    assert answered(answer) == as_json(client, "digits", inputs=pixels.tolist())


@pytest.mark.parametrize("kind", ["logits", "probabilities"])
def test_outputs_with_a_supplied_column(client, kind: str) -> None:
    logits = rng.normal(size=(200, 4)).astype(np.float32) * 3
    scores = logits if kind == "logits" else softmax(logits, axis=1)
    own = rng.random(200).astype(np.float32)
    name, archive = f"own-{kind}", {kind: scores, "uncertainty_own": own}
    labelled = npz(**archive, labels=logits.argmax(axis=1))
    calibrated(client, {"name": name} | OWN, calibration=labelled)
    assert declared(client, name) == [(kind, "FP32", [-1, 4]), ("uncertainty_own", "FP32", [-1])]
    expected = as_json(client, name, **{kind: scores.tolist(), "supplied": {"own": own.tolist()}})
    assert answered(send(client, name, npz(**archive), NPZ)) == expected
    bytes_of = {kind: encoded(scores), "supplied": {"own": encoded(own)}}
    assert as_json(client, name, **bytes_of) == expected
    document = client.get(f"/calibrations/{name}/bins").json()
    copied = client.post("/calibrations/import", json=document, params={"name": "copy"}).json()
    assert copied["model"] is None
    assert as_json(client, copied["id"], **bytes_of)["predictions"] == expected["predictions"]
    wide = scores.astype(np.float64)
    tensors = {"inputs": [in_json("uncertainty_own", own), in_bytes(kind, wide, "FP64")]}
    answer = outputs_of(infer(client, name, tensors, wide.tobytes()))
    events = [row["top1"] for row in expected["predictions"]]
    assert answer["top1_bin"].tolist() == [event["bin"] for event in events]
    np.testing.assert_array_equal(answer["top1_uncertainty"], own)
    missing = infer(client, name, {"inputs": tensors["inputs"][1:]}, wide.tobytes())
    assert (missing.status_code, "supplied.own" in missing.json()["error"]) == (400, True)


def test_integers(client) -> None:
    matrix = weights()
    pixels = rng.integers(0, 256, (200, len(matrix))).astype(np.uint8)
    archive = npz(inputs=pixels, labels=(pixels @ matrix).argmax(1))
    model = from_integers(matrix).SerializeToString()
    calibrated(client, {"name": "bytes"}, model=model, calibration=archive)
    ((name, datatype, _),) = declared(client, "bytes")
    assert datatype == "UINT8"
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


def test_media_types_that_are_documented_are_known(client, digits_calibration) -> None:
    operation = client.get("/openapi.json").json()["paths"]["/predict"]["post"]
    for media_type in operation["requestBody"]["content"]:
        answer = send(client, "digits", b"no such body", {"Content-Type": media_type})
        assert answer.status_code in (400, 422), media_type
    for media_type in sorted(operation["responses"]["200"]["content"]):
        answer = send(client, "digits", npy(PIXELS), NPY | {"Accept": media_type})
        assert answer.headers["content-type"] == media_type
    # The last are arrays, which do not name the calibration.
    reference = f"id={digits_calibration['id']}; name=digits; version=1"
    assert answer.headers["Howsure-Calibration"] == reference


# What requests hold, by name of a calibration, and how wide it is.
KINDS = {"digits": ("inputs", 64), "mixed-steps": ("inputs", 64), "mixed-outputs": ("logits", 3)}
SIZES = (1, 1, 1, 1, 1, 2, 3, 40, 129)
CLIENTS, REQUESTS = 24, 120


@pytest.fixture(scope="module")
def mixed(client, digits_calibration) -> None:
    calibrated(client, {"name": "mixed-steps", "lookup": "step"}, **DIGITS_PARTS)
    calibrated(client, {"name": "mixed-outputs"}, calibration=logits_set())


def rows_of(name: str, size: int, seed: int) -> np.ndarray:
    generator = np.random.default_rng(seed)
    return generator.normal(4, 4, (size, KINDS[name][1])).astype(np.float32)


def send_together(client: httpx.Client, requests: list[Sent]) -> list[httpx.Response]:
    """Send from many connections at a time."""
    with ThreadPoolExecutor(CLIENTS) as threads:
        return list(threads.map(lambda sent: sent.by(client), requests))


@pytest.mark.usefixtures("mixed")
@pytest.mark.parametrize("name", KINDS)
def test_every_form_gets_the_same_answer(client, name) -> None:
    kind, rows = KINDS[name][0], rows_of(name, 5, seed=0)
    # An array without a name holds inputs, wherever it is sent.
    others = [form for form in FORMS if kind == "inputs" or form is not forms.as_npy]
    answers = {form.__name__: form(name, kind, rows).by(client) for form in others}
    expected = said_of_rows(answers["as_json"])
    assert expected.keys() >= {"class", "top1_probability", "top1_lower", "top1_bin"}
    for form, answer in answers.items():
        assert answer.status_code == OK, answer.text
        assert said_of_rows(answer) == expected, form


@pytest.mark.usefixtures("mixed")
def test_concurrent_requests_get_the_answers_of_single_ones(client) -> None:
    chance, requests = random.Random(0), []
    for seed in range(REQUESTS):
        name = chance.choice(list(KINDS))
        form = chance.choice(FORMS if chance.random() < 0.6 else REFUSED)
        sent = form(name, KINDS[name][0], rows_of(name, chance.choice(SIZES), seed))
        requests.append((name, sent))
    together = send_together(client, [sent for _, sent in requests])
    for (name, sent), answer in zip(requests, together, strict=True):
        alone = sent.by(client)
        if name == "mixed-outputs" or answer.status_code != OK:
            assert said(answer) == said(alone), sent.content[:200]
            continue
        columns, expected = said_of_rows(answer), said_of_rows(alone)
        assert columns.keys() == expected.keys()
        for column, values in expected.items():
            # The last bits of a model's outputs may change with the rows beside them, and with
            # them a curve and the shares of other classes.
            exact = column == "class" or column.endswith("_bin")
            exact = exact or (name == "mixed-steps" and column != "topk_probability")
            tolerance = 0 if exact else 1e-6
            np.testing.assert_allclose(columns[column], values, rtol=0, atol=tolerance)
    assert {answer.status_code for answer in together} == {OK, 400, 404, 422}


@pytest.mark.process
def test_the_process_that_reads_outputs_is_kept_and_replaced_when_it_dies(database, tmp_path):
    with workspace_on(database, tmp_path) as workspace:
        name = succeed(workspace, queued(workspace, logits_set())).name
        with predictor_of(workspace) as predictor:
            answers, processes = [], []
            for kills in (False, True, False):
                answers.append(predictor.ask(name, [[0.1, 0.2, 0.3]], kind="logits"))
                (state,) = predictor.models.states()
                processes.append(state.pid)
                if kills:
                    os.kill(state.pid, signal.SIGKILL)
                    assert wait_until(lambda: predictor.models.states()[0].pid is None)
    assert answers == answers[:1] * 3
    assert processes[0] == processes[1] != processes[2]


def test_distributions_are_logits_only_where_the_calibration_set_had_such(client) -> None:
    shares, labels = rng.dirichlet([0.2] * 3, 200), rng.integers(0, 3, 200)
    labels[:130] = shares.argmax(1)[:130]
    raw, softmaxed = (npz(logits=scale * shares, labels=labels) for scale in (9, 1))
    for name, labelled, status in (("raw", raw, UNPROCESSABLE), ("softmaxed", softmaxed, OK)):
        calibrated(client, {"name": name}, calibration=labelled)
        assert send(client, name, npz(logits=shares[:5]), NPZ).status_code == status
    few = shares[:5]
    for arrays in ({"logits": np.eye(3)[:1]}, {"logits": 9 * few + 1}, {"probabilities": few}):
        assert send(client, "raw", npz(**arrays), NPZ).status_code == OK
    again = {"calibration": raw, "evaluation": softmaxed, "config": quick_config(name="raw")}
    for answer in (evaluate(client, "raw", "further", softmaxed), calibrate(client, **again)):
        assert answer.status_code == UNPROCESSABLE

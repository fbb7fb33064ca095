"""Concurrent requests in different formats get the same answers as single ones."""

import io
import json
import random
from concurrent.futures import ThreadPoolExecutor

import httpx
import numpy as np
import pytest
import request_formats as mixed
from job_workspaces import logits_set
from request_formats import FORMS, REFUSED, in_json, said, said_of_rows
from running_service import DIGITS_PARTS, calibrated, digits, npz

OK = httpx.codes.OK
# What requests hold, by name of a calibration, and how wide it is.
KINDS = {"digits": ("inputs", 64), "mixed-steps": ("inputs", 64), "mixed-outputs": ("logits", 3)}
SIZES = (1, 1, 1, 1, 1, 2, 3, 40, 129)
CLIENTS, REQUESTS = 24, 120


@pytest.fixture(scope="module", autouse=True)
def made(client, digits_calibration) -> None:
    calibrated(client, {"name": "mixed-steps", "lookup": "step"}, **DIGITS_PARTS)
    calibrated(client, {"name": "mixed-outputs"}, calibration=logits_set())


def rows_of(name: str, size: int, seed: int) -> np.ndarray:
    generator = np.random.default_rng(seed)
    return generator.normal(4, 4, (size, KINDS[name][1])).astype(np.float32)


def send_together(client: httpx.Client, requests: list[mixed.Sent]) -> list[httpx.Response]:
    """Send from many connections at a time."""
    with ThreadPoolExecutor(CLIENTS) as threads:
        return list(threads.map(lambda sent: sent.by(client), requests))


@pytest.mark.parametrize("name", KINDS)
def test_every_form_gets_the_same_answer(client, name) -> None:
    kind, rows = KINDS[name][0], rows_of(name, 5, seed=0)
    # An array without a name holds inputs, wherever it is sent.
    forms = [form for form in FORMS if kind == "inputs" or form is not mixed.as_npy]
    answers = {form.__name__: form(name, kind, rows).by(client) for form in forms}
    expected = said_of_rows(answers["as_json"])
    assert expected.keys() >= {"class", "top1_probability", "top1_lower", "top1_bin"}
    for form, answer in answers.items():
        assert answer.status_code == OK, answer.text
        assert said_of_rows(answer) == expected, form


def test_concurrent_requests_get_the_answers_of_single_ones(client) -> None:
    chance, requests = random.Random(0), []
    for seed in range(REQUESTS):
        name = chance.choice(list(KINDS))
        form = chance.choice(FORMS if chance.random() < 0.6 else REFUSED)
        rows = rows_of(name, chance.choice(SIZES), seed)
        requests.append((name, form(name, KINDS[name][0], rows)))
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


def with_supplied(form: int, rows: np.ndarray, own: np.ndarray) -> mixed.Sent:
    """Return a request that brings the uncertainties of its rows with it."""
    if form == 0:
        body = {"calibration": "own", "inputs": rows.tolist(), "supplied": {"own": own.tolist()}}
        return mixed.Sent("/predict", json.dumps(body).encode())
    inputs = [in_json("inputs", rows), in_json("uncertainty_own", own)]
    return mixed.Sent("/v2/models/own/infer", json.dumps({"inputs": inputs}).encode())


def test_requests_are_answered_by_their_own_supplied_uncertainties(client) -> None:
    known = dict(np.load(io.BytesIO(digits("calibration.npz"))))
    generator = np.random.default_rng(5)
    measures = {"measures": ["entropy", "supplied:own"], "serve": {"1": "supplied:own"}}
    archive = npz(**known, uncertainty_own=generator.random(len(known["labels"])))
    calibrated(client, {"name": "own"} | measures, model=digits("model.onnx"), calibration=archive)
    brought = [generator.random(1 + index % 3).astype(np.float32) for index in range(40)]
    requests = [
        with_supplied(index % 2, known["inputs"][: len(values)], values)
        for index, values in enumerate(brought)
    ]
    missing = mixed.as_json("own", "inputs", known["inputs"][:2])
    answers = send_together(client, [sent for one in requests for sent in (one, missing)])
    for sent, values, answer in zip(requests, brought, answers[::2], strict=True):
        assert said(answer) == said(sent.by(client))
        if sent.path == "/predict":
            served = [row["top1"]["uncertainty"] for row in answer.json()["predictions"]]
            assert np.float32(served).tolist() == values.tolist()
    assert {answer.status_code for answer in answers[1::2]} == {422}

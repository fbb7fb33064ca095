"""Concurrent requests in different formats get the same answers as single ones."""

import io
import json
import random
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import httpx
import mixed_requests as mixed
import numpy as np
import pytest
from job_workspaces import logits_set
from mixed_requests import FORMS, REFUSED, said, said_of_rows
from oip_service import in_json, oip_service_on
from predict_bodies import NPZ, npz
from running_service import calibrate, digits
from uploads import calibrated

OK = httpx.codes.OK
# Names of a model, and of uploaded outputs.
KINDS = {"digits": ("inputs", 64), "outputs": ("logits", 3)}
SIZES = (1, 1, 1, 1, 1, 2, 3, 40, 129, 300)
CLIENTS = 24
REQUESTS = 120


@pytest.fixture(scope="module")
def client(tmp_path_factory) -> Iterator[httpx.Client]:
    with oip_service_on(tmp_path_factory.mktemp("mixed")) as (client, _):
        model, calibration = digits("model.onnx"), digits("calibration.npz")
        config = '{"name": "digits", "bins": 10}'
        made = [
            calibrate(client, model=model, calibration=calibration, config=config),
            calibrate(client, calibration=logits_set(), config='{"name": "outputs", "bins": 5}'),
        ]
        for answer in made:
            assert answer.json()["status"] == "succeeded", answer.text
        yield client


def rows_of(name: str, size: int, chance: random.Random) -> np.ndarray:
    _, width = KINDS[name]
    generator = np.random.default_rng(chance.getrandbits(32))
    return generator.normal(4, 4, (size, width)).astype(np.float32)


def send_together(client: httpx.Client, requests: list[mixed.Sent]) -> list[httpx.Response]:
    """Send from many connections at a time."""
    with (
        httpx.Client(
            base_url=client.base_url,
            timeout=60,
            limits=httpx.Limits(max_connections=CLIENTS, max_keepalive_connections=CLIENTS),
        ) as many,
        ThreadPoolExecutor(CLIENTS) as threads,
    ):
        return list(threads.map(lambda sent: sent.by(many), requests))


@pytest.mark.parametrize("name", KINDS)
def test_every_form_says_the_same(client, name) -> None:
    kind, _ = KINDS[name]
    rows = rows_of(name, 5, random.Random(0))
    # An array without a name holds inputs, wherever it is sent.
    forms = [form for form in FORMS if kind == "inputs" or form is not mixed.as_npy]
    answers = {form.__name__: form(name, kind, rows).by(client) for form in forms}
    assert {form: answer.status_code for form, answer in answers.items()} == dict.fromkeys(
        answers, OK
    )
    expected = said_of_rows(answers["as_json"])
    assert expected.keys() >= {"class", "top1_probability", "top1_lower", "top1_bin"}
    for form, answer in answers.items():
        assert said_of_rows(answer) == expected, form


@pytest.mark.parametrize("seed", range(2))
def test_each_gets_what_he_would_get_alone(client, seed) -> None:
    chance = random.Random(seed)
    requests = []
    for _ in range(REQUESTS):
        name = chance.choice(list(KINDS))
        form = chance.choice(FORMS if chance.random() < 0.8 else REFUSED)
        rows = rows_of(name, chance.choice(SIZES), chance)
        requests.append(form(name, KINDS[name][0], rows))
    together = send_together(client, requests)
    for sent, answer in zip(requests, together, strict=True):
        assert said(answer) == said(sent.by(client)), sent.content[:200]
    assert {answer.status_code for answer in together} >= {OK, 400, 422}


@pytest.mark.parametrize("form", REFUSED, ids=lambda form: form.__name__)
def test_one_that_is_refused_harms_nobody_beside_it(client, form) -> None:
    name = "digits"
    chance = random.Random(form.__name__)
    good = [mixed.as_json(name, "inputs", rows_of(name, 1, chance)) for _ in range(12)]
    bad = [form(name, "inputs", rows_of(name, 1, chance)) for _ in range(12)]
    alone = [said(sent.by(client)) for sent in good]
    requests = [sent for pair in zip(good, bad, strict=True) for sent in pair]
    answers = [said(answer) for answer in send_together(client, requests)]
    assert answers[::2] == alone
    assert all(status in (400, 404, 415, 422) for status, *_ in answers[1::2])
    assert len(set(answers[1::2])) == 1  # one sentence, whoever stands beside it


def with_supplied(form: int, rows: np.ndarray, own: np.ndarray) -> mixed.Sent:
    """Return a request that brings the uncertainties of its rows with it."""
    if form == 0:
        body = {"calibration": "own", "inputs": rows.tolist(), "supplied": {"own": own.tolist()}}
        return mixed.Sent("/predict", json.dumps(body).encode())
    if form == 1:
        arrays = npz(inputs=rows, uncertainty_own=own)
        return mixed.Sent("/predict", arrays, NPZ, {"calibration": "own"})
    inputs = [in_json("inputs", rows), in_json("uncertainty_own", own)]
    return mixed.Sent("/v2/models/own/infer", json.dumps({"inputs": inputs}).encode())


def test_everybody_is_answered_by_the_uncertainties_he_brought(client) -> None:
    known = dict(np.load(io.BytesIO(digits("calibration.npz"))))
    generator = np.random.default_rng(5)
    own = generator.random(len(known["labels"]))
    calibrated(
        client,
        {"name": "own", "measures": ["entropy", "supplied:own"], "serve": {"1": "supplied:own"}},
        model=digits("model.onnx"),
        calibration=npz(**known, uncertainty_own=own),
    )
    requests, brought = [], []
    for index in range(60):
        values = generator.random(1 + index % 3).astype(np.float32)
        brought.append(values)
        requests.append(with_supplied(index % 3, known["inputs"][: len(values)], values))
    name = "own"
    missing = mixed.as_json(name, "inputs", known["inputs"][:2])
    answers = send_together(client, [sent for pair in requests for sent in (pair, missing)])
    for sent, values, answer in zip(requests, brought, answers[::2], strict=True):
        assert said(answer) == said(sent.by(client))
        if sent.path == "/predict" and not sent.params:
            found = [row["top1"]["uncertainty"] for row in answer.json()["predictions"]]
            assert np.float32(found).tolist() == values.tolist()
    assert {answer.status_code for answer in answers[1::2]} == {422}

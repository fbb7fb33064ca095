"""Calibrations without a model: a sandboxed process reads the outputs in requests."""

import json
import os
import signal

import httpx
import numpy as np
import pytest
from job_workspaces import calibrate, logits_set, succeed, workspace_on
from predict_bodies import npy, npz
from predictor import predictor_of
from runner_children import wait_until
from running_service import service_on
from uploads import calibrated

from service.errors import InvalidInput

NAME = "calibration"
LOGITS = [[0.1, 0.2, 0.3]]


@pytest.fixture
def workspace(database, tmp_path):
    with workspace_on(database, tmp_path) as made:
        job = calibrate(made, logits_set())
        succeed(made, job)
        yield made


@pytest.fixture
def predictor(workspace):
    with predictor_of(workspace) as predictor:
        yield predictor


def test_its_process_is_kept_and_another_takes_its_place_when_it_dies(predictor) -> None:
    expected = predictor.ask(NAME, LOGITS, kind="logits")
    (held,) = predictor.models.states()
    assert predictor.ask(NAME, LOGITS, kind="logits") == expected
    assert [state.pid for state in predictor.models.states()] == [held.pid]
    os.kill(held.pid, signal.SIGKILL)
    assert wait_until(lambda: predictor.models.states()[0].pid is None)
    assert predictor.ask(NAME, LOGITS, kind="logits") == expected


def test_a_bad_request_costs_the_others_nothing(predictor) -> None:
    expected = predictor.ask(NAME, LOGITS, kind="logits")
    bad = predictor.begin(NAME, [[0.1, 0.2]], kind="logits")
    good = predictor.begin(NAME, LOGITS, kind="logits")
    with pytest.raises(InvalidInput, match=r"expected shape \[rows, 3\]"):
        bad.result(30)
    assert good.result(30) == expected


BODIES = {
    "application/json": lambda rows: json.dumps(
        {"calibration": "outputs", "logits": rows.tolist()}
    ).encode(),
    "application/x-npz": lambda rows: npz(logits=rows),
    "text/csv": lambda rows: "\n".join(
        ["logit_0,logit_1,logit_2", *(",".join(map(repr, row)) for row in rows.tolist())]
    ).encode(),
}


def test_every_form_of_a_body_is_answered_alike(tmp_path) -> None:
    rows = np.random.default_rng(1).normal(size=(40, 3)).astype(np.float32)
    with service_on(tmp_path) as client:
        calibrated(client, '{"name": "outputs"}', calibration=logits_set())
        found = [post(client, kind, write(rows)) for kind, write in BODIES.items()]
        assert client.get("/models").json()["models"] == []
        refused = post(client, "text/csv", b"logit_0,logit_1,logit_2\n0,1,x\n")
        lone = post(client, "application/x-npy", npy(rows))
    assert [answer.status_code for answer in found] == [httpx.codes.OK] * len(BODIES)
    first, *others = [answer.json()["predictions"] for answer in found]
    assert all(other == first for other in others)
    assert refused.json()["type"] == lone.json()["type"] == "urn:howsure:problem:invalid-input"
    assert refused.json()["errors"][0]["location"].startswith("body")
    assert "logits" in lone.json()["errors"][0]["message"]


def post(client: httpx.Client, media_type: str, content: bytes) -> httpx.Response:
    params = {} if media_type == "application/json" else {"calibration": "outputs"}
    headers = {"Content-Type": media_type}
    return client.post("/predict", params=params, content=content, headers=headers)

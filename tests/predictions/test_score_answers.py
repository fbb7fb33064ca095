"""Calibrations without a model: a sandboxed process reads the outputs in requests."""

import os
import signal

import numpy as np
import pytest
from job_workspaces import calibrate, logits_set, predictor_of, succeed, workspace_on
from runner_children import wait_until
from running_service import NPY, NPZ, calibrated, npy, npz, quick_config, send

from service.errors import InvalidInput

NAME = "calibration"
LOGITS = [[0.1, 0.2, 0.3]]
CSV = {"Content-Type": "text/csv"}
COLUMNS = "logit_0,logit_1,logit_2"


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


def test_the_reader_process_is_kept_and_replaced_when_it_dies(predictor) -> None:
    expected = predictor.ask(NAME, LOGITS, kind="logits")
    (held,) = predictor.models.states()
    assert predictor.ask(NAME, LOGITS, kind="logits") == expected
    assert [state.pid for state in predictor.models.states()] == [held.pid]
    os.kill(held.pid, signal.SIGKILL)
    assert wait_until(lambda: predictor.models.states()[0].pid is None)
    assert predictor.ask(NAME, LOGITS, kind="logits") == expected


def test_a_bad_request_leaves_the_others_answered(predictor) -> None:
    expected = predictor.ask(NAME, LOGITS, kind="logits")
    bad = predictor.begin(NAME, [[0.1, 0.2]], kind="logits")
    good = predictor.begin(NAME, LOGITS, kind="logits")
    with pytest.raises(InvalidInput, match=r"expected shape \[rows, 3\]"):
        bad.result(30)
    assert good.result(30) == expected


def test_a_table_of_outputs_is_answered_as_arrays_are(client) -> None:
    calibrated(client, quick_config(name="scores"), calibration=logits_set())
    rows = np.random.default_rng(1).normal(size=(40, 3)).astype(np.float32)
    lines = [",".join(map(repr, row)) for row in rows.tolist()]
    by_csv = send(client, "scores", "\n".join([COLUMNS, *lines]).encode(), CSV)
    by_npz = send(client, "scores", npz(logits=rows), NPZ)
    assert by_csv.json()["predictions"] == by_npz.json()["predictions"]
    assert "scores@1" not in [model["name"] for model in client.get("/models").json()["models"]]
    for headers, body, place in (
        (CSV, f"{COLUMNS}\n0,1,x\n".encode(), "body"),
        (NPY, npy(rows), "inputs"),
    ):
        refused = send(client, "scores", body, headers).json()
        assert refused["type"] == "urn:howsure:problem:invalid-input"
        assert refused["errors"][0]["location"].startswith(place)

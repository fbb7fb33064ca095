"""Calibrations without a model: a sandboxed process reads the outputs in requests."""

import os
import signal

import numpy as np
from job_workspaces import calibrate, logits_set, predictor_of, succeed, workspace_on
from runner_children import wait_until
from running_service import NPY, NPZ, calibrated, evaluate, npy, npz, quick_config, send
from running_service import calibrate as upload

NAME = "calibration"
LOGITS = [[0.1, 0.2, 0.3]]
CSV = {"Content-Type": "text/csv"}
COLUMNS = "logit_0,logit_1,logit_2"


def test_the_reader_process_is_kept_and_replaced_when_it_dies(database, tmp_path) -> None:
    with workspace_on(database, tmp_path) as workspace:
        succeed(workspace, calibrate(workspace, logits_set()))
        with predictor_of(workspace) as predictor:
            expected = predictor.ask(NAME, LOGITS, kind="logits")
            (held,) = predictor.models.states()
            assert predictor.ask(NAME, LOGITS, kind="logits") == expected
            assert [state.pid for state in predictor.models.states()] == [held.pid]
            os.kill(held.pid, signal.SIGKILL)
            assert wait_until(lambda: predictor.models.states()[0].pid is None)
            assert predictor.ask(NAME, LOGITS, kind="logits") == expected


def test_distributions_are_logits_only_where_the_calibration_set_had_such(client) -> None:
    rng = np.random.default_rng(0)
    shares, labels = rng.dirichlet([0.2] * 3, 300), rng.integers(0, 3, 300)
    labels[:200] = shares.argmax(1)[:200]
    for name, logits, expected in (("softmaxed", shares, 200), ("raw", 9 * shares, 422)):
        found = calibrated(
            client, quick_config(name=name), calibration=npz(logits=logits, labels=labels)
        )
        codes = [finding["code"] for finding in found["findings"]]
        assert ("softmax-twice" in codes) == (name == "softmaxed")
        assert send(client, name, npz(logits=shares[:5]), NPZ).status_code == expected
        assert send(client, name, npz(logits=[[1.0, 0.0, 0.0]]), NPZ).status_code == 200
        assert send(client, name, npz(logits=logits[:5] + 1), NPZ).status_code == 200
        assert send(client, name, npz(probabilities=shares[:5]), NPZ).status_code == 200
        further = npz(logits=shares, labels=labels)
        status = evaluate(client, name, "further", further).status_code
        assert status == (201 if expected == 200 else 422)
        again = {"calibration": npz(logits=logits, labels=labels), "evaluation": further}
        config = quick_config(name=f"{name}-again")
        assert upload(client, config=config, **again).status_code == status


def test_a_table_of_outputs_is_answered_as_arrays_are(client) -> None:
    calibrated(client, quick_config(name="scores"), calibration=logits_set())
    rows = np.random.default_rng(1).normal(size=(40, 3)).astype(np.float32)
    lines = [",".join(map(repr, row)) for row in rows.tolist()]
    by_csv = send(client, "scores", "\n".join([COLUMNS, *lines]).encode(), CSV)
    by_npz = send(client, "scores", npz(logits=rows), NPZ)
    assert by_csv.json()["predictions"] == by_npz.json()["predictions"]
    assert "scores@1" not in [model["name"] for model in client.get("/models").json()["models"]]
    by_npy = send(client, "scores", npy(rows), NPY)
    assert by_npy.json()["predictions"] == by_npz.json()["predictions"]
    refused = send(client, "scores", f"{COLUMNS}\n0,1,x\n".encode(), CSV).json()
    assert refused["type"] == "urn:howsure:problem:invalid-input"
    assert refused["errors"][0]["location"].startswith("body")

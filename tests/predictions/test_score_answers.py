"""Calibrations without a model: a sandboxed process reads the outputs in requests."""

import os
import signal

import numpy as np
import pytest
from job_workspaces import calibrate, logits_set, predictor_of, succeed, workspace_on
from runner_children import wait_until
from running_service import NPY, NPZ, calibrated, evaluate, npy, npz, quick_config, send
from running_service import calibrate as upload

CSV = {"Content-Type": "text/csv"}
COLUMNS = "logit_0,logit_1,logit_2"


@pytest.mark.process
def test_the_reader_process_is_kept_and_replaced_when_it_dies(database, tmp_path) -> None:
    with workspace_on(database, tmp_path) as workspace:
        name = succeed(workspace, calibrate(workspace, logits_set())).name
        with predictor_of(workspace) as predictor:

            def ask() -> dict:
                return predictor.ask(name, [[0.1, 0.2, 0.3]], kind="logits")

            expected = ask()
            (held,) = predictor.models.states()
            assert ask() == expected
            assert [state.pid for state in predictor.models.states()] == [held.pid]
            os.kill(held.pid, signal.SIGKILL)
            assert wait_until(lambda: predictor.models.states()[0].pid is None)
            assert ask() == expected


@pytest.mark.parametrize(("scale", "ok"), [(1, True), (9, False)], ids=["softmaxed", "raw"])
def test_distributions_are_logits_only_where_the_calibration_set_had_such(client, scale, ok):
    rng = np.random.default_rng(0)
    shares, labels = rng.dirichlet([0.2] * 3, 200), rng.integers(0, 3, 200)
    labels[:130] = shares.argmax(1)[:130]
    name, logits = f"distributions-{scale}", scale * shares
    made = calibrated(client, {"name": name}, calibration=npz(logits=logits, labels=labels))
    assert ("softmax-twice" in [finding["code"] for finding in made["findings"]]) == ok
    assert send(client, name, npz(logits=shares[:5]), NPZ).status_code == (200 if ok else 422)
    for arrays in (
        {"logits": [[1.0, 0.0, 0.0]]},
        {"logits": logits[:5] + 1},
        {"probabilities": shares[:5]},
    ):
        assert send(client, name, npz(**arrays), NPZ).status_code == 200
    further = npz(logits=shares, labels=labels)
    again = {"calibration": npz(logits=logits, labels=labels), "evaluation": further}
    for answer in (
        evaluate(client, name, "further", further),
        upload(client, config=quick_config(name=name), **again),
    ):
        assert answer.status_code == (201 if ok else 422)


def test_a_table_of_outputs_is_answered_as_arrays_are(client) -> None:
    calibrated(client, {"name": "scores"}, calibration=logits_set())
    rows = np.random.default_rng(1).normal(size=(40, 3)).astype(np.float32)
    lines = [COLUMNS, *(",".join(map(repr, row)) for row in rows.tolist())]
    expected = send(client, "scores", npz(logits=rows), NPZ).json()["predictions"]
    for content, headers in (("\n".join(lines).encode(), CSV), (npy(rows), NPY)):
        assert send(client, "scores", content, headers).json()["predictions"] == expected
    assert "scores@1" not in [model["name"] for model in client.get("/models").json()["models"]]
    refused = send(client, "scores", f"{COLUMNS}\n0,1,x\n".encode(), CSV).json()
    assert refused["type"] == "urn:howsure:problem:invalid-input"
    assert refused["errors"][0]["location"].startswith("body")

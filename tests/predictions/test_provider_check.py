"""Calibrations made on another execution provider are compared before they are served."""

import shutil
from pathlib import Path

import httpx
import numpy as np
import pytest
from job_workspaces import calibrate as queued
from job_workspaces import inputs_set, succeed, workspace_on
from model_services import CASES, labelled_sets, quick, started
from moved_calibrations import (
    CPU,
    CUDA,
    change_records,
    forget_samples,
    lose_samples,
    say_made_on_cuda,
)
from request_formats import in_json, infer
from runner_children import children, wait_until
from runner_models import linear, rows
from running_service import DIGITS_PARTS, calibrate, calibrated, digits, service_on

from service.errors import InvalidInput, OnnxModelCrashed, ProviderMismatch
from service.predictions.load_calibration import load_served
from service.predictions.provider_check import ProviderCheck
from service.runner.model_to_serve import NOT_NEEDED

ROWS = np.load(Path(__file__).parents[2] / "examples" / "digits" / "evaluation.npz")["inputs"][:40]
PROBLEM = "urn:howsure:problem:provider-mismatch"


def ask(client: httpx.Client, reference: str = "digits", rows: np.ndarray = ROWS) -> httpx.Response:
    body = {"calibration": reference, "inputs": rows.astype(float).tolist()}
    return client.post("/predict", json=body)


def held(client: httpx.Client) -> dict[str, dict]:
    return {found["name"]: found for found in client.get("/models").json()["models"]}


@pytest.fixture(scope="module")
def first(tmp_path_factory) -> tuple[Path, dict]:
    """Two calibrations of one model, on other samples each, and what the first answers."""
    folder = tmp_path_factory.mktemp("first")
    with service_on(folder) as client:
        for name, sent in (("digits", "calibration.npz"), ("other", "evaluation.npz")):
            parts = DIGITS_PARTS | {"calibration": digits(sent)}
            calibrated(client, {"name": name, "bins": 10}, **parts)
        return folder, ask(client).json()["predictions"]


@pytest.fixture
def moved(first, tmp_path) -> Path:
    folder = tmp_path / "moved"
    shutil.copytree(first[0], folder)
    say_made_on_cuda(folder)
    return folder


def scale_uncertainties(arrays) -> None:
    """Scale also what the learned measure is computed from."""
    for name in arrays:
        if name.startswith("uncertainty_") or name == "log_sum_exp":
            arrays[name][:256] *= np.float32(1.05)


def swap_classes(arrays) -> None:
    arrays["top_classes"][:7, :2] = arrays["top_classes"][:7, 1::-1].copy()
    arrays["top_logits"][:7, 1] = -0.5


def test_with_the_same_provider_nothing_is_compared(first, tmp_path) -> None:
    folder = tmp_path / "copy"
    shutil.copytree(first[0], folder)
    change_records(folder, scale_uncertainties)
    with service_on(folder) as client:
        assert ask(client).json()["predictions"] == first[1]
        state = held(client)["digits@1"]
    assert (state["parity"], state["parity_rows"]) == ("not_needed", 0)
    assert (state["status"], state["provider"], state["device"]) == ("loaded", CPU, "cpu")


def test_with_another_provider_that_agrees_it_answers_the_same(first, moved) -> None:
    with service_on(moved) as client:
        assert ask(client).json()["predictions"] == first[1]
        state = held(client)["digits@1"]
    assert (state["parity"], state["parity_rows"], state["problem"]) == ("checked", 256, None)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (scale_uncertainties, "(0 with another class, "),
        (swap_classes, "of 256 stored samples 7 are answered otherwise"),
    ],
    ids=["value", "class"],
)
def test_a_difference_is_refused_and_nothing_is_left(moved, change, told) -> None:
    change_records(moved, change)
    before = children()
    with service_on(moved) as client:
        for _ in range(2):
            answer = ask(client)
            found = answer.json()
            assert answer.status_code == httpx.codes.SERVICE_UNAVAILABLE
            assert answer.headers["content-type"] == "application/problem+json"
            assert (found["type"], found["status"]) == (PROBLEM, 503)
            for part in (CPU, CUDA, told, "digits@1", "alibrate it anew", "HOWSURE_DEVICE=cuda:0"):
                assert part in found["detail"]
        # The child that waits in reserve is all there is.
        assert wait_until(lambda: len(children()) <= len(before) + 1)
        state = held(client)["digits@1"]
        assert state["status"] == "failed"
        assert state["problem"]["detail"] == found["detail"]
        assert (state["memory_bytes"], state["provider"], state["parity"]) == (0, None, None)
        tensor = in_json("inputs", np.zeros((1, 64)))
        by_protocol = infer(client, "digits", {"inputs": [tensor]})
        assert by_protocol.status_code == httpx.codes.SERVICE_UNAVAILABLE
        assert by_protocol.json() == {"error": found["detail"]}
        # The same model, calibrated where it runs now.
        assert ask(client, "other").status_code == httpx.codes.OK
        assert held(client)["other@1"]["parity"] == "not_needed"
    assert wait_until(lambda: children() == before)


def test_a_calibration_without_samples_is_served_unchecked(first, moved) -> None:
    forget_samples(moved)
    with service_on(moved) as client:
        assert ask(client).json()["predictions"] == first[1]
        assert ask(client, "other").status_code == httpx.codes.OK
        found = held(client)
    assert (found["digits@1"]["parity"], found["other@1"]["parity"]) == ("unchecked", "not_needed")


def test_lost_samples_fail_only_the_calibration_that_needs_them(first, moved) -> None:
    lose_samples(moved)
    with service_on(moved) as client:
        assert ask(client, "other").status_code == httpx.codes.OK
        refused = ask(client)
    assert refused.status_code == httpx.codes.INTERNAL_SERVER_ERROR
    assert refused.json()["type"] == "urn:howsure:problem:artifact-damaged"


@pytest.mark.parametrize("case", quick(CASES, "last layer", "ensemble"))
def test_measures_of_several_runs_agree_with_their_records(tmp_path, case) -> None:
    with service_on(tmp_path) as client:
        made = started(client, case)
    say_made_on_cuda(tmp_path, made["name"])
    rows = labelled_sets()["evaluation_inputs"][:5]
    with service_on(tmp_path) as client:
        assert ask(client, made["name"], rows).status_code == httpx.codes.OK
        assert held(client)[f"{made['name']}@1"]["parity"] == "checked"


def test_the_provider_of_the_job_is_stored_not_that_of_the_trial(tmp_path) -> None:
    with service_on(tmp_path, workers=0) as client:
        sent = calibrate(client, **DIGITS_PARTS, config='{"name": "digits"}', wait=0)
        assert sent.status_code == httpx.codes.ACCEPTED
    say_made_on_cuda(tmp_path)
    with service_on(tmp_path) as client:
        place = f"/calibrations/{sent.json()['id']}"
        assert wait_until(lambda: client.get(place).json()["status"] == "succeeded", seconds=60)
        found = client.get(place).json()["model"]
    assert (found["provider"], found["device"]) == (CPU, "cpu")


SET = rows(300)


@pytest.fixture
def workspace(database, tmp_path):
    with workspace_on(database, tmp_path) as made:
        yield made


@pytest.fixture
def rehearsed(workspace):
    """A calibration's row, what serves it, and a rehearsal of it."""
    job = queued(workspace, inputs_set(len(SET)), onnx_model=linear().SerializeToString())
    row = succeed(workspace, job)
    served = load_served(workspace, row.tenant_id, str(row.id))
    return row, served, ProviderCheck(workspace, row, served.events)


def test_the_same_provider_runs_a_few_rows_and_one(workspace, rehearsed) -> None:
    _, served, rehearsal = rehearsed
    model, asked = served.onnx_model, []

    def run(inputs):
        asked.append(len(inputs["inputs"]))
        return workspace.runners.predict(model.files, model.resolved, inputs)

    assert rehearsal(run, CPU) == NOT_NEEDED
    assert asked == [4, 1]
    assert rehearsal.apart(workspace.runners) == ""


def test_a_row_without_an_answer_does_not_fail_the_warm_up(workspace, rehearsed) -> None:
    def run(_):
        raise InvalidInput("calibration[3]: the output is not finite")

    assert rehearsed[2](run, CPU) == NOT_NEEDED
    with pytest.raises(ProviderMismatch, match=r"calibration\[3\]: the output is not finite"):
        rehearsed[2](run, CUDA)


@pytest.mark.parametrize("provider", [CPU, CUDA])
def test_a_model_that_dies_in_the_check_is_not_served(rehearsed, provider) -> None:
    def run(_):
        raise OnnxModelCrashed("The process that ran the ONNX model died.")

    with pytest.raises(OnnxModelCrashed):
        rehearsed[2](run, provider)

"""Calibrations made on another execution provider are compared before they are served."""

from collections.abc import Iterator

import httpx
import numpy as np
import pytest
from job_workspaces import calibrate as queued
from job_workspaces import inputs_set, succeed, workspace_on
from model_services import CASES, labelled_sets, quick, started
from moved_calibrations import CPU, CUDA, change_records, remove_samples, say_made_on_cuda
from request_formats import as_json, as_tensors_in_json
from runner_children import children, wait_until
from runner_models import linear, rows
from running_service import Service, calibrated, service_on

from service.errors import InvalidInput, OnnxModelCrashed, ProviderMismatch
from service.predictions.load_calibration import load_served
from service.predictions.provider_check import ProviderCheck
from service.runner.model_to_serve import NOT_NEEDED

pytestmark = pytest.mark.process
SET = rows(300)
PARTS = {"model": linear().SerializeToString(), "calibration": inputs_set(len(SET))}
ROWS = rows(40, seed=3)
PROBLEM = "urn:howsure:problem:provider-mismatch"


def scale_uncertainties(arrays) -> None:
    """Scale also what the learned measure is computed from."""
    for name in arrays:
        if name.startswith("uncertainty_") or name == "log_sum_exp":
            arrays[name][:256] *= np.float32(1.05)


def swap_classes(arrays) -> None:
    arrays["top_classes"][:7, :2] = arrays["top_classes"][:7, 1::-1].copy()
    arrays["top_logits"][:7, 1] = -0.5


@pytest.fixture(scope="module")
def service(tmp_path_factory) -> Iterator[Service]:
    """A service of calibrations of one model, most of which say that CUDA made them."""
    learned = {"measures": ["learned", "margin"]}
    folder = tmp_path_factory.mktemp("moved")
    with service_on(folder) as client:
        for name in ("here", "moved", "value", "class", "forgotten", "lost"):
            config = learned if name in ("here", "moved", "forgotten") else {}
            calibrated(client, {"name": name} | config, **PARTS)
            if name != "here":
                say_made_on_cuda(folder, name)
        # Calibrations of equal samples share a check.
        for name in ("here", "value", "lost"):
            change_records(folder, scale_uncertainties, name=name)
        for name in ("class", "lost"):
            change_records(folder, swap_classes, name=name)
        remove_samples(folder, "forgotten", rows=True)
        remove_samples(folder, "lost")
        yield Service(client, folder)


@pytest.fixture(scope="module")
def client(service) -> httpx.Client:
    return service.client


def ask(client: httpx.Client, name: str, inputs: np.ndarray = ROWS) -> httpx.Response:
    return as_json(name, "inputs", inputs).by(client)


def state_of(client: httpx.Client, name: str) -> dict:
    states = client.get("/models").json()["models"]
    return next(state for state in states if state["name"] == f"{name}@1")


AGREEING = [("here", "not_needed", 0), ("moved", "checked", 256), ("forgotten", "unchecked", 0)]


@pytest.mark.parametrize(("name", "parity", "n_rows"), AGREEING)
def test_a_calibration_that_agrees_answers_as_before(client, name, parity, n_rows) -> None:
    """With the same provider nothing is compared, and without samples nothing can be."""
    predictions = ask(client, name).json()["predictions"]
    state = state_of(client, name)
    assert (state["parity"], state["parity_rows"], state["problem"]) == (parity, n_rows, None)
    assert (state["status"], state["provider"], state["device"]) == ("loaded", CPU, "cpu")
    assert predictions == ask(client, "here").json()["predictions"]


DIFFERING = [("value", "(0 with another class"), ("class", "of 256 stored samples 7")]


@pytest.mark.parametrize(("name", "figures"), DIFFERING)
def test_a_difference_is_refused_and_nothing_is_left(client, name, figures) -> None:
    assert ask(client, "here").status_code == httpx.codes.OK
    before = children()
    for _ in range(2):
        problem = ask(client, name).json()
        assert (problem["type"], problem["status"]) == (PROBLEM, 503)
        for word in (CPU, CUDA, figures, f"{name}@1", "HOWSURE_DEVICE=cuda:0"):
            assert word in problem["detail"]
    # The child that waits in reserve is all that may be new.
    assert wait_until(lambda: len(children()) <= len(before) + 1)
    state = state_of(client, name)
    assert state["status"] == "failed"
    assert state["problem"]["detail"] == problem["detail"]
    assert (state["memory_bytes"], state["provider"], state["parity"]) == (0, None, None)
    by_protocol = as_tensors_in_json(name, "x", ROWS).by(client)
    assert by_protocol.status_code == httpx.codes.SERVICE_UNAVAILABLE
    # The same model, calibrated where it runs now.
    assert ask(client, "here").status_code == httpx.codes.OK


def test_lost_samples_fail_only_the_calibration_that_needs_them(client) -> None:
    problem = ask(client, "lost").json()
    damaged = "urn:howsure:problem:artifact-damaged"
    assert (problem["type"], problem["status"]) == (damaged, 500)
    assert ask(client, "here").status_code == httpx.codes.OK


@pytest.mark.parametrize("name", quick({name: name for name in CASES}, "last layer", "ensemble"))
def test_measures_of_several_runs_agree_with_their_records(service, name) -> None:
    made = started(service.client, CASES[name], name=name.replace(" ", "-").replace(",", ""))
    say_made_on_cuda(service.folder, made["name"])
    inputs = labelled_sets()["evaluation_inputs"][:5]
    assert ask(service.client, made["name"], inputs).is_success
    assert state_of(service.client, made["name"])["parity"] == "checked"


def test_what_the_check_runs_and_what_its_errors_mean(database, tmp_path) -> None:
    with workspace_on(database, tmp_path) as workspace:
        job = queued(workspace, PARTS["calibration"], onnx_model=PARTS["model"])
        # The provider of the job is stored, not that of the trial.
        say_made_on_cuda(tmp_path, job.name)
        row = succeed(workspace, job)
        assert (row.onnx_model["provider"], row.onnx_model["device"]) == (CPU, "cpu")
        served = load_served(workspace, row.tenant_id, str(row.id))
        check = ProviderCheck(workspace, row, served.events)
        model, n_rows = served.onnx_model, []

        def run(inputs):
            n_rows.append(len(inputs["inputs"]))
            return workspace.runners.predict(model.files, model.resolved, inputs)

        assert check(run, CPU) == NOT_NEEDED
        assert n_rows == [4, 1]
        assert check.apart(workspace.runners) == ""

    def fail(error):
        def run(_):
            raise error

        return run

    refuse = fail(InvalidInput("calibration[3]: the output is not finite"))
    # A row without an answer does not fail the warm-up.
    assert check(refuse, CPU) == NOT_NEEDED
    with pytest.raises(ProviderMismatch, match=r"calibration\[3\]"):
        check(refuse, CUDA)
    for provider in (CPU, CUDA):
        with pytest.raises(OnnxModelCrashed):
            check(fail(OnnxModelCrashed("it died")), provider)

"""Which stored rows a model runs before it answers anybody."""

import numpy as np
import pytest
import structlog
from job_workspaces import calibrate, ended, inputs_set, wait_for, working, workspace_on
from runner_models import linear, rows

from service.errors import InvalidInput, OnnxModelCrashed, ProviderMismatch
from service.predictions.load_calibration import load_served
from service.predictions.provider_check import ProviderCheck
from service.runner.model_to_serve import NOT_NEEDED, UNCHECKED, ProviderParity

CPU, CUDA = "CPUExecutionProvider", "CUDAExecutionProvider"
SET = rows(300)


@pytest.fixture
def workspace(database, tmp_path):
    with workspace_on(database, tmp_path) as made:
        yield made


@pytest.fixture
def calibrated(workspace):
    """A calibration's row, what serves it, and a rehearsal of it."""
    job = calibrate(workspace, inputs_set(len(SET)), onnx_model=linear().SerializeToString())
    with working(workspace):
        row = wait_for(workspace, job, ended)
    assert row.status == "succeeded", row.error
    served = load_served(workspace, row.tenant_id, str(row.id))
    return row, served, ProviderCheck(workspace, row, served.events)


class Running:
    """Runs rows by the pool, and keeps what it was asked."""

    def __init__(self, workspace, served) -> None:
        self._pool, self._model = workspace.runners, served.onnx_model
        self.asked = []

    def __call__(self, inputs):
        self.asked.append(inputs["inputs"])
        return self._pool.predict(self._model.files, self._model.resolved, inputs)


def test_the_same_provider_runs_a_few_rows_and_one(workspace, calibrated) -> None:
    _, served, rehearsal = calibrated
    run = Running(workspace, served)
    assert rehearsal(run, CPU) == NOT_NEEDED
    assert [len(sent) for sent in run.asked] == [4, 1]
    for sent in run.asked:
        np.testing.assert_array_equal(sent, SET[: len(sent)])
    assert rehearsal.apart(workspace.runners) == ""


def test_another_provider_runs_256_rows_together(workspace, calibrated) -> None:
    _, served, rehearsal = calibrated
    run = Running(workspace, served)
    assert rehearsal(run, CUDA) == ProviderParity("checked", 256)
    (sent,) = run.asked
    np.testing.assert_array_equal(sent, SET[:256])


def test_one_that_compares_is_apart_from_others_of_its_model(workspace, calibrated) -> None:
    row, served, _ = calibrated
    samples = next(found for found in row.artifacts if found.role == "samples")
    row.onnx_model = {**row.onnx_model, "provider": CUDA}
    assert ProviderCheck(workspace, row, served.events).apart(workspace.runners) == (
        f"{CUDA}/{samples.sha256}"
    )


def test_a_row_that_cannot_be_answered_is_no_matter_of_the_warm_up(workspace, calibrated) -> None:
    def run(_):
        raise InvalidInput("calibration[3]: the output is not finite")

    assert calibrated[2](run, CPU) == NOT_NEEDED
    with pytest.raises(ProviderMismatch, match=r"calibration\[3\]: the output is not finite"):
        calibrated[2](run, CUDA)


@pytest.mark.parametrize("provider", [CPU, CUDA])
def test_a_model_that_dies_of_it_is_not_served(calibrated, provider) -> None:
    def run(_):
        raise OnnxModelCrashed("The process that ran the ONNX model died.")

    with pytest.raises(OnnxModelCrashed):
        calibrated[2](run, provider)


def test_without_samples_nothing_is_run_and_that_is_logged_once(workspace, calibrated) -> None:
    row, served, _ = calibrated
    row.artifacts = [found for found in row.artifacts if found.role.startswith("model")]
    rehearsal, run = ProviderCheck(workspace, row, served.events), Running(workspace, served)
    with structlog.testing.capture_logs() as lines:
        assert rehearsal(run, CPU) == NOT_NEEDED
        assert [rehearsal(run, CUDA) for _ in range(3)] == [UNCHECKED] * 3
    assert run.asked == []
    assert [(line["event"], line["log_level"]) for line in lines] == [
        ("provider_unchecked", "warning")
    ]
    assert (lines[0]["calibrated_with"], lines[0]["runs_with"]) == (CPU, CUDA)

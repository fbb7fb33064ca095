"""A job waits for a model's process as long as it takes, and hears what it is told meanwhile."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from job_workspaces import (
    calibrate,
    ended,
    evaluate,
    inputs_set,
    reread,
    wait_for,
    working,
    workspace_on,
)
from runner_models import endless_above, linear, rows, save

from service.errors import DeadlineExceeded
from service.operations.further_sets import cancel_evaluation
from service.operations.manage_calibrations import cancel_calibration

LINEAR = linear().SerializeToString()
BUSY_SECONDS = 2.5
SHORTER = 0.3


@contextmanager
def busy(workspace, folder) -> Iterator[None]:
    """Keep the only process at another model, until its time is up."""
    files = save(folder, endless_above(1000.0), name="busy.onnx")
    trial = rows(20)
    resolved = workspace.runners.inspect(files, top_k=(1,), trial={"x": trial}).resolved
    ready = threading.Event()

    def endlessly() -> None:
        ready.set()
        with pytest.raises(DeadlineExceeded):
            workspace.runners.predict(files, resolved, {"x": trial + 1e6})

    thread = threading.Thread(target=endlessly)
    thread.start()
    ready.wait(10)
    try:
        yield
    finally:
        thread.join()


def finished_calibration(workspace):
    job = calibrate(workspace, inputs_set(), onnx_model=LINEAR)
    with working(workspace):
        assert wait_for(workspace, job, ended).status == "succeeded"
    return job


def queued_job(workspace, kind):
    if kind == "calibration":
        return calibrate(workspace, inputs_set(), onnx_model=LINEAR)
    return evaluate(workspace, finished_calibration(workspace), inputs_set(seed=2))


def cancel(workspace, job):
    if hasattr(job, "calibration_id"):
        return cancel_evaluation(workspace, job.tenant_id, str(job.calibration_id), job.name)
    return cancel_calibration(workspace, job.tenant_id, str(job.id))


KINDS = pytest.mark.parametrize("kind", ["calibration", "evaluation"])


@KINDS
def test_a_busy_pool_fails_no_job(database, tmp_path, kind) -> None:
    with workspace_on(
        database,
        tmp_path,
        max_processes=1,
        run_timeout_s=BUSY_SECONDS,
        queue_timeout_s=SHORTER,
    ) as workspace:
        job = queued_job(workspace, kind)
        with busy(workspace, tmp_path), working(workspace):
            wait_for(workspace, job, lambda row: row.status == "running")
            row = wait_for(workspace, job, ended)
            assert (row.status, row.error, row.attempt) == ("succeeded", None, 1)


@KINDS
def test_a_running_job_that_waits_is_cancelled(database, tmp_path, kind) -> None:
    with workspace_on(database, tmp_path, max_processes=1, run_timeout_s=BUSY_SECONDS) as workspace:
        job = queued_job(workspace, kind)
        with busy(workspace, tmp_path), working(workspace):
            wait_for(workspace, job, lambda row: row.progress_stage is not None)
            assert cancel(workspace, job).status == "running"
            row = wait_for(workspace, job, ended, seconds=BUSY_SECONDS - 1)
            assert (row.status, row.error) == ("cancelled", None)
            assert row.finished_at is not None


@KINDS
def test_a_queued_job_is_cancelled_at_once_and_never_runs(database, tmp_path, kind) -> None:
    with workspace_on(database, tmp_path) as workspace:
        job = queued_job(workspace, kind)
        assert cancel(workspace, job).status == "cancelled"
        with working(workspace):
            behind = calibrate(workspace, inputs_set(seed=3), onnx_model=LINEAR)
            assert wait_for(workspace, behind, ended).status == "succeeded"
        row = reread(workspace, job)
        assert (row.status, row.attempt, row.started_at) == ("cancelled", 0, None)

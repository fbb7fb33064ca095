"""A job waits for a busy model as long as needed and can be cancelled meanwhile."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import pytest
from job_workspaces import (
    calibrate,
    ended,
    evaluate,
    inputs_set,
    reread,
    succeed,
    wait_for,
    working,
    workspace_on,
)
from runner_models import linear, rows, save

from service.calibrations.manage import cancel_calibration
from service.evaluations.evaluations import cancel_evaluation
from service.jobs.acceptance import CallContext

LINEAR = linear().SerializeToString()
BRIEFLY = 0.3


@contextmanager
def busy(workspace, folder) -> Iterator[threading.Event]:
    """Keep the only process for another model until the event is set, or the block ends."""
    files = save(folder, linear(), name="busy.onnx")
    trial = rows(20)
    resolved = workspace.runners.inspect(files, top_k=(1,), trial={"x": trial}).resolved
    held, released = threading.Event(), threading.Event()

    def hold() -> None:
        held.set()
        released.wait()

    labels = np.zeros(len(trial), dtype=int)
    thread = threading.Thread(
        target=workspace.runners.record,
        args=(files, resolved, {"x": trial}, labels),
        # Called once the process is held, before each part of the rows.
        kwargs={"seed": 0, "while_waiting": hold},
    )
    thread.start()
    try:
        assert held.wait(60)
        yield released
    finally:
        released.set()
        thread.join()


def finished_calibration(workspace):
    job = calibrate(workspace, inputs_set(), onnx_model=LINEAR)
    succeed(workspace, job)
    return job


def queued_job(workspace, kind):
    if kind == "calibration":
        return calibrate(workspace, inputs_set(), onnx_model=LINEAR)
    return evaluate(workspace, finished_calibration(workspace), inputs_set(seed=2))


def cancel(workspace, job):
    ctx = CallContext(workspace, job.tenant_id)
    if hasattr(job, "calibration_id"):
        return cancel_evaluation(ctx, str(job.calibration_id), job.name)
    return cancel_calibration(ctx, str(job.id))


KINDS = pytest.mark.parametrize("kind", ["calibration", "evaluation"])


@KINDS
def test_a_job_waits_for_a_busy_process_longer_than_a_request(database, tmp_path, kind) -> None:
    with workspace_on(database, tmp_path, max_processes=1, queue_timeout_s=BRIEFLY) as workspace:
        job = queued_job(workspace, kind)
        with busy(workspace, tmp_path) as released, working(workspace):
            wait_for(workspace, job, lambda row: row.progress_stage is not None)
            time.sleep(2 * BRIEFLY)
            assert reread(workspace, job).status == "running"
            released.set()
            row = wait_for(workspace, job, ended)
            assert (row.status, row.error, row.attempt) == ("succeeded", None, 1)


@KINDS
def test_a_running_job_that_waits_is_cancelled(database, tmp_path, kind) -> None:
    with workspace_on(database, tmp_path, max_processes=1) as workspace:
        job = queued_job(workspace, kind)
        with busy(workspace, tmp_path) as released, working(workspace):
            wait_for(workspace, job, lambda row: row.progress_stage is not None)
            assert cancel(workspace, job).status == "running"
            row = wait_for(workspace, job, ended)
            assert not released.is_set()
            assert (row.status, row.error) == ("cancelled", None)
            assert row.finished_at is not None

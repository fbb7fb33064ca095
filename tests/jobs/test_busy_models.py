"""A job waits for a busy model as long as needed and can be cancelled meanwhile."""

import threading
from contextlib import contextmanager

import numpy as np
import pytest
from job_workspaces import (
    calibrate,
    ended,
    evaluate,
    inputs_set,
    succeed,
    wait_for,
    working,
    workspace_on,
)
from runner_models import linear, rows, save, weights

from service.errors import Overloaded
from service.evaluations.evaluations import cancel_evaluation
from service.jobs.acceptance import CallContext

pytestmark = pytest.mark.process

LINEAR = linear().SerializeToString()
X = rows(20)


@contextmanager
def busy(workspace, folder):
    """Keep the only process for another model until the event is set, or the block ends."""
    files = save(folder, linear(), name="busy.onnx")
    resolved = workspace.runners.inspect(files, top_k=(1,), trial={"x": X}).resolved
    held, released = threading.Event(), threading.Event()

    def hold() -> None:
        held.set()
        released.wait()

    thread = threading.Thread(
        target=workspace.runners.record,
        args=(files, resolved, {"x": X}, np.zeros(len(X), dtype=int)),
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


def begun(row) -> bool:
    return row.progress_stage is not None


def test_a_job_waits_longer_than_a_request_and_may_be_cancelled(database, tmp_path) -> None:
    """Evaluations; `test_attempts` cancels a calibration."""
    with workspace_on(database, tmp_path, max_processes=1, queue_timeout_s=0.3) as workspace:
        calibration = calibrate(workspace, inputs_set(), onnx_model=LINEAR)
        succeed(workspace, calibration)
        first, second = (
            evaluate(workspace, calibration, inputs_set(seed=2), name) for name in ("a", "b")
        )
        other = save(tmp_path, linear(weights(4)))
        with busy(workspace, tmp_path) as released, working(workspace):
            wait_for(workspace, first, begun)
            with pytest.raises(Overloaded):  # a request gives up
                workspace.runners.inspect(other, top_k=(1,), trial={"x": X})
            ctx = CallContext(workspace, first.tenant_id)
            assert cancel_evaluation(ctx, str(calibration.id), first.name).status == "running"
            row = wait_for(workspace, first, ended)
            assert (row.status, row.error) == ("cancelled", None)
            wait_for(workspace, second, begun)
            assert not released.is_set()
            released.set()
            row = wait_for(workspace, second, ended)
            assert (row.status, row.error, row.attempt) == ("succeeded", None, 1)

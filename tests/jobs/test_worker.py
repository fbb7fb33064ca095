"""A stopping worker queues its jobs again without counting an attempt."""

import threading

import pytest
from job_workspaces import (
    calibrate,
    ended,
    evaluate,
    finish,
    inputs_set,
    logits_set,
    succeed,
    wait_for,
    working,
    workspace_on,
)
from runner_children import busiest
from runner_models import endless_above

import models
from service.jobs.progress import Progress
from service.jobs.worker import Workers
from service.startup import JOB_KINDS
from service.storage.file_locks import OwnerLock

pytestmark = pytest.mark.process

ENDLESS = endless_above(1000.0).SerializeToString()


def is_at_the_model(row) -> bool:
    return row.status == "running" and row.progress_stage == "calibration"


def test_a_job_in_an_endless_batch_is_handed_back_and_then_the_file(database, tmp_path) -> None:
    lock, next_lock = OwnerLock(tmp_path / "owner"), OwnerLock(tmp_path / "owner")
    with workspace_on(database, tmp_path) as workspace:
        job = calibrate(workspace, inputs_set(ends=False), onnx_model=ENDLESS)
        workers = Workers(workspace, JOB_KINDS, count=1, owner="one", owner_lock=lock)
        workers.start()
        wait_for(workspace, job, is_at_the_model)
        busiest(ticks=20)

        workers.stop(0.3)
        assert is_at_the_model(wait_for(workspace, job, lambda _: True))
        assert not next_lock.try_acquire()
        workspace.runners.close()
        workers.finish()

        row = wait_for(workspace, job, lambda _: True)
        assert (row.status, row.attempt, row.error) == ("queued", 0, None)
        assert not any(thread.is_alive() for thread in workers._threads)
        assert next_lock.try_acquire()
        next_lock.release()


def test_a_job_that_does_not_look_up_is_cut_off(database, tmp_path, monkeypatch) -> None:
    is_over = threading.Event()

    def deaf(self, *_, **__) -> None:
        is_over.wait()

    with workspace_on(database, tmp_path) as workspace:
        job = calibrate(workspace, logits_set())
        workers = Workers(workspace, JOB_KINDS, count=1, owner="one", owner_lock=None)
        monkeypatch.setattr(Progress, "report", deaf)
        workers.start()
        wait_for(workspace, job, lambda row: row.status == "running")
        workers.stop(0.1)
        workers.finish(0.1)

        row = wait_for(workspace, job, lambda _: True)
        assert (row.status, row.attempt) == ("queued", 0)
        is_over.set()
        for thread in workers._threads:
            thread.join()
        row = wait_for(workspace, job, lambda _: True)
        assert (row.status, row.attempt, row.accuracy) == ("queued", 0, None)

        monkeypatch.undo()
        succeed(workspace, job)


def test_an_evaluation_does_not_wait_for_all_calibrations(database, tmp_path) -> None:
    with workspace_on(database, tmp_path) as workspace:
        first = calibrate(workspace, logits_set())
        finish(workspace, first)
        calibrations = [calibrate(workspace, logits_set()) for _ in range(2)]
        evaluation = evaluate(workspace, first, logits_set(seed=1))
        with working(workspace):
            last = wait_for(workspace, calibrations[-1], ended)
            assert wait_for(workspace, evaluation, ended).started_at < last.started_at


def test_a_configuration_beyond_todays_bounds_is_fitted_as_it_was_stored(
    database, tmp_path
) -> None:
    with workspace_on(database, tmp_path) as workspace:
        job = calibrate(workspace, logits_set())
        with database.session(job.tenant_id) as session:
            row = session.get(models.Calibration, job.id)
            targets = [0.99 - 0.01 * n for n in range(21)]
            row.config = row.config | {"targets": targets, "of_another_version": True}
        succeed(workspace, job)

"""A stop hands jobs back, and no attempt is counted."""

import threading

from job_workspaces import calibrate, ended, inputs_set, logits_set, wait_for, working, workspace_on
from runner_children import busiest
from runner_models import endless_above

from service.jobs.progress import Progress
from service.jobs.worker import Workers
from service.startup import JOB_KINDS
from service.storage.file_locks import OwnerLock

ENDLESS = endless_above(1000.0).SerializeToString()


def is_at_the_model(row) -> bool:
    return row.status == "running" and row.progress_stage == "calibration"


def test_a_job_in_an_endless_batch_is_handed_back(database, tmp_path) -> None:
    with workspace_on(database, tmp_path) as workspace:
        job = calibrate(workspace, inputs_set(ends=False), onnx_model=ENDLESS)
        workers = Workers(workspace, JOB_KINDS, count=1, owner="one", owner_lock=None)
        workers.start()
        wait_for(workspace, job, is_at_the_model)
        busiest()

        workers.stop(0.3)
        assert is_at_the_model(wait_for(workspace, job, lambda _: True))
        workspace.runners.close()
        workers.finish()

        row = wait_for(workspace, job, lambda _: True)
        assert (row.status, row.attempt, row.error) == ("queued", 0, None)
        assert not any(thread.is_alive() for thread in workers._threads)


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
        with working(workspace):
            assert wait_for(workspace, job, ended).status == "succeeded"


def test_the_owner_of_a_file_lets_it_go_when_its_jobs_are_handed_back(database, tmp_path) -> None:
    lock, next_lock = OwnerLock(tmp_path / "owner"), OwnerLock(tmp_path / "owner")
    with workspace_on(database, tmp_path) as workspace:
        job = calibrate(workspace, inputs_set(ends=False), onnx_model=ENDLESS)
        workers = Workers(workspace, JOB_KINDS, count=1, owner="one", owner_lock=lock)
        workers.start()
        wait_for(workspace, job, is_at_the_model)
        workers.stop(0.1)
        assert not next_lock.try_acquire()
        workspace.runners.close()
        workers.finish()
        assert wait_for(workspace, job, lambda _: True).status == "queued"
        assert next_lock.try_acquire()
        next_lock.release()

"""A stop hands jobs back, and no attempt is counted."""

import time

from job_workspaces import calibrate, ended, inputs_set, logits_set, wait_for, working, workspace_on
from own_time import Stopwatch
from runner_models import endless_above

from service.jobs.worker import Workers
from service.operations.job_progress import JobProgress
from service.storage.owner_lock import OwnerLock

ENDLESS = endless_above(1000.0).SerializeToString()
SOON = 8.0


def is_at_the_model(row) -> bool:
    return row.status == "running" and row.progress_stage == "calibration"


def test_a_job_in_an_endless_batch_is_handed_back(database, tmp_path) -> None:
    with workspace_on(database, tmp_path) as workspace:
        job = calibrate(workspace, inputs_set(ends=False), onnx_model=ENDLESS)
        workers = Workers(workspace, count=1, owner="one", owner_lock=None)
        workers.start()
        wait_for(workspace, job, is_at_the_model)
        time.sleep(0.3)  # the model runs by now

        watch = Stopwatch()
        workers.stop(0.3)
        assert is_at_the_model(wait_for(workspace, job, lambda _: True))
        workspace.runners.close()
        workers.finish()

        assert watch.seconds() < SOON
        row = wait_for(workspace, job, lambda _: True)
        assert (row.status, row.attempt, row.error) == ("queued", 0, None)
        assert not any(thread.is_alive() for thread in workers._threads)


def test_a_job_that_does_not_look_up_is_cut_off(database, tmp_path, monkeypatch) -> None:
    computing = 1.0

    def deaf(self, *_, **__) -> None:
        time.sleep(computing)

    with workspace_on(database, tmp_path) as workspace:
        job = calibrate(workspace, logits_set())
        workers = Workers(workspace, count=1, owner="one", owner_lock=None)
        monkeypatch.setattr(JobProgress, "say", deaf)
        workers.start()
        wait_for(workspace, job, lambda row: row.status == "running")
        workers.stop(0.1)
        workers.finish(0.1)

        row = wait_for(workspace, job, lambda _: True)
        assert (row.status, row.attempt) == ("queued", 0)
        for thread in workers._threads:
            thread.join(20)
        row = wait_for(workspace, job, lambda _: True)
        assert (row.status, row.attempt, row.accuracy) == ("queued", 0, None)

        monkeypatch.undo()
        with working(workspace):
            assert wait_for(workspace, job, ended).status == "succeeded"


def test_the_owner_of_a_file_lets_it_go_when_its_jobs_are_handed_back(database, tmp_path) -> None:
    lock, next_lock = OwnerLock(tmp_path / "owner"), OwnerLock(tmp_path / "owner")
    with workspace_on(database, tmp_path) as workspace:
        job = calibrate(workspace, inputs_set(ends=False), onnx_model=ENDLESS)
        workers = Workers(workspace, count=1, owner="one", owner_lock=lock)
        workers.start()
        wait_for(workspace, job, is_at_the_model)
        workers.stop(0.1)
        assert not next_lock.try_acquire()
        workspace.runners.close()
        workers.finish()
        assert wait_for(workspace, job, lambda _: True).status == "queued"
        assert next_lock.try_acquire()
        next_lock.release()

"""On SQLite one process runs jobs; the others say once that they wait, and take over."""

from job_workspaces import calibrate, ended, logits_set, wait_for, workspace_on
from runner_children import wait_until
from structlog.testing import capture_logs

from service.jobs.worker import POLL_SECONDS, Workers
from service.storage.owner_lock import OwnerLock


def test_one_that_waits_says_so_once_and_goes_on_when_the_owner_ends(database, tmp_path) -> None:
    held = OwnerLock(tmp_path / "owner")
    assert held.try_acquire()
    with workspace_on(database, tmp_path) as workspace, capture_logs() as lines:
        job = calibrate(workspace, logits_set())
        lock = OwnerLock(tmp_path / "owner")
        workers = Workers(workspace, count=2, owner="two", owner_lock=lock)
        workers.start()
        try:
            assert wait_until(lambda: events(lines) == ["waiting_to_run_jobs"])
            held.release()
            row = wait_for(workspace, job, ended, seconds=30 + POLL_SECONDS)
            assert row.status == "succeeded"
        finally:
            workers.stop()
            workers.finish()

    assert [event for event in events(lines) if "run" in event] == [
        "waiting_to_run_jobs",
        "runs_jobs_from_now_on",
    ]


def events(lines: list[dict]) -> list[str]:
    return [line["event"] for line in lines if line["event"] != "orphans_removed"]

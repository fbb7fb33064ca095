"""On SQLite one process runs jobs; the others say once that they wait, and take over."""

import logging
from collections.abc import Iterator

import pytest
import structlog
from job_workspaces import calibrate, ended, logits_set, wait_for, workspace_on
from runner_children import wait_until

from service.jobs.worker import Workers
from service.startup import JOB_KINDS
from service.storage.file_locks import OwnerLock

WAITS, GOES_ON = "waiting_to_run_jobs", "runs_jobs_now"


@pytest.fixture
def lines() -> Iterator[list[dict]]:
    """What is logged, whatever level a service in this process has asked for before."""
    before = structlog.get_config()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.INFO))
    try:
        with structlog.testing.capture_logs() as found:
            yield found
    finally:
        structlog.configure(**before)


def said(lines: list[dict]) -> list[str]:
    return [line["event"] for line in lines if line["event"] in (WAITS, GOES_ON)]


@pytest.mark.parametrize("dialect", ["sqlite"], indirect=True)
def test_one_that_waits_says_so_once_and_goes_on_when_the_owner_ends(
    database, tmp_path, lines
) -> None:
    held = OwnerLock(tmp_path / "owner")
    assert held.try_acquire()
    with workspace_on(database, tmp_path) as workspace:
        job = calibrate(workspace, logits_set())
        lock = OwnerLock(tmp_path / "owner")
        workers = Workers(workspace, JOB_KINDS, count=2, owner="two", owner_lock=lock)
        workers.start()
        try:
            assert wait_until(lambda: said(lines) == [WAITS], seconds=30)
            assert wait_for(workspace, job, lambda _: True).status == "queued"
            held.release()
            assert wait_for(workspace, job, ended, seconds=60).status == "succeeded"
        finally:
            workers.stop()
            workers.finish()

    assert said(lines) == [WAITS, GOES_ON]

"""On SQLite one process runs jobs; the others log once that they wait, and take over."""

import logging
import os
import signal
import subprocess
import sys
from collections.abc import Iterator

import pytest
import structlog
from job_workspaces import calibrate, ended, logits_set, wait_for, workspace_on
from runner_children import wait_until

from service.jobs.worker import Workers
from service.startup import JOB_KINDS
from service.storage.database import open_database
from service.storage.file_locks import OwnerLock

WAITS, GOES_ON = "waiting_to_run_jobs", "runs_jobs_now"


@pytest.fixture
def lines() -> Iterator[list[dict]]:
    """What is logged, whatever level a service in this process has asked for before."""
    before = structlog.get_config()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.INFO))
    with structlog.testing.capture_logs() as captured:
        yield captured
    structlog.configure(**before)


def said(lines: list[dict]) -> list[str]:
    return [line["event"] for line in lines if line["event"] in (WAITS, GOES_ON)]


@pytest.mark.process
def test_one_that_waits_says_so_once_and_runs_after_the_owner(database, tmp_path, lines) -> None:
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


HOLD = """
import subprocess, sys, time
from pathlib import Path
from service.storage.file_locks import OwnerLock
assert OwnerLock(Path(sys.argv[1])).try_acquire()
child = subprocess.Popen(
    [sys.executable, "-c", "input()"],
    stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, close_fds=False,
)
print(child.pid, flush=True)
time.sleep(60)
"""


@pytest.mark.process
def test_another_process_is_kept_out_until_the_owner_dies_whatever_its_children_do(tmp_path):
    path = tmp_path / "lock"
    lock = OwnerLock(path)
    command = [sys.executable, "-c", HOLD, str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as owner:
        child = int(owner.stdout.readline())
        assert not lock.try_acquire()
        owner.kill()
    try:
        assert lock.try_acquire()
        lock.release()
    finally:
        os.kill(child, signal.SIGKILL)


def test_sqlite_has_one_owner_at_a_time_and_postgresql_many(database, tmp_path):
    first, second = OwnerLock.beside(database), OwnerLock.beside(database)
    for owner, other in [(first, second), (second, first)]:
        assert owner.try_acquire()
        assert (tmp_path / "howsure.sqlite3.owner").exists()
        assert owner.try_acquire()
        other.release()
        assert not other.try_acquire()
        owner.release()
    many = open_database("postgresql+psycopg://nobody@127.0.0.1:1/none")
    assert OwnerLock.beside(many) is None
    many.dispose()

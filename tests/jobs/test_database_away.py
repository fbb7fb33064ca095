"""A database that is unavailable for a while stops no worker and fails no job."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest
from databases import BOTH_DIALECTS
from job_workspaces import (
    calibrate,
    ended,
    finish,
    inputs_set,
    logits_set,
    succeed,
    wait_for,
    working,
    workspace_on,
)
from runner_models import endless_above, undefined_below_zero, weights
from sqlalchemy.exc import OperationalError
from structlog.testing import capture_logs

from service.errors import Overloaded
from service.jobs.queue import JobQueue
from service.workspace import Workspace

AWAY = {
    "translated": lambda: Overloaded("The database does not answer."),
    "raw": lambda: OperationalError("SELECT", {}, Exception("gone")),
}


class AwayQueue(JobQueue):
    """A queue whose database is away for the first calls of some methods."""

    def __init__(self, *args, away: Counter, error: Callable[[], Exception]) -> None:
        super().__init__(*args)
        self._away, self._error = away, error

    def _reach(self, method: str) -> None:
        if self._away[method] > 0:
            self._away[method] -= 1
            raise self._error()

    def claim(self):
        self._reach("claim")
        return super().claim()

    def renew(self, job):
        self._reach("renew")
        return super().renew(job)

    def fail(self, job, error):
        self._reach("fail")
        return super().fail(job, error)

    def release(self, job):
        self._reach("release")
        return super().release(job)

    def publish(self, job, **values):
        self._reach("publish")
        super().publish(job, **values)


@dataclass(frozen=True)
class AwayWorkspace(Workspace):
    away: Counter = field(default_factory=Counter)
    error: list[Callable[[], Exception]] = field(default_factory=list)

    def job_queue(self, owner, table):
        args = (self.database, owner, self.lease_seconds, table)
        return AwayQueue(*args, away=self.away, error=self.error[0])


@pytest.fixture(params=AWAY)
def workspace(request, database, tmp_path):
    with workspace_on(database, tmp_path, kind=AwayWorkspace, lease_seconds=15.0) as made:
        made.error.append(AWAY[request.param])
        # Tracebacks with all their locals take longer to write here than the lease lasts.
        with capture_logs():
            yield made


def test_while_it_claims(workspace) -> None:
    workspace.away["claim"] = 2
    job = calibrate(workspace, logits_set())
    succeed(workspace, job)
    assert workspace.away["claim"] == 0


def test_while_it_writes_that_a_job_failed(workspace) -> None:
    workspace.away["fail"] = 2
    onnx_model = undefined_below_zero(weights()).SerializeToString()
    job = calibrate(workspace, inputs_set(defined=False), onnx_model=onnx_model)
    with working(workspace):
        row = wait_for(workspace, job, ended)
        assert (row.status, row.attempt) == ("failed", 1)
        assert row.error["type"].endswith("invalid-dataset")
        behind = calibrate(workspace, logits_set())
        assert wait_for(workspace, behind, ended).status == "succeeded"
    assert workspace.away["fail"] == 0


def test_while_it_renews(database, tmp_path) -> None:
    with workspace_on(
        database, tmp_path, kind=AwayWorkspace, lease_seconds=1.5, run_timeout_s=4.0
    ) as made:
        made.error.append(AWAY["translated"])
        made.away["renew"] = 1
        endless = endless_above(1000.0).SerializeToString()
        job = calibrate(made, inputs_set(ends=False), onnx_model=endless)
        with working(made, count=2):
            row = wait_for(made, job, ended)
        # Held for longer than two leases: the other worker would have taken it over.
        assert (row.status, row.attempt) == ("failed", 1)
        assert row.error["type"].endswith("deadline-exceeded")
        assert made.away["renew"] == 0


@BOTH_DIALECTS
def test_while_it_publishes(database, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr("service.jobs.worker.PAUSE_SECONDS", 0.1)
    with workspace_on(database, tmp_path, kind=AwayWorkspace) as made:
        made.error.append(AWAY["translated"])
        made.away.update(publish=1, release=1)
        job = calibrate(made, logits_set())
        row = finish(made, job)
        assert (row.status, row.attempt, row.error) == ("succeeded", 1, None)
        assert not made.away["publish"]
        assert not made.away["release"]

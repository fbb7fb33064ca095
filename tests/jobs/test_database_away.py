"""A database that is unavailable for a while stops no worker and fails no job."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import cycle

import pytest
from databases import BOTH_DIALECTS
from job_workspaces import (
    calibrate,
    ended,
    finish,
    inputs_set,
    logits_set,
    wait_for,
    working,
    workspace_on,
)
from runner_children import wait_until
from runner_models import undefined_below_zero, weights
from sqlalchemy.exc import OperationalError
from stored_rows import claimed, queue_calibration, stored
from structlog.testing import capture_logs

import models
from service.errors import Overloaded
from service.jobs.queue import JobQueue
from service.jobs.worker import renewed_lease
from service.workspace import Workspace


def translated() -> Exception:
    return Overloaded("The database does not answer.")


def raw() -> Exception:
    return OperationalError("SELECT", {}, Exception("gone"))


class AwayQueue(JobQueue):
    """A queue whose database is away for the first calls of a method."""

    def __init__(self, *args, away: Counter, error: Callable[[], Exception]) -> None:
        super().__init__(*args)
        self.away, self.error = away, error

    def __getattribute__(self, name):
        if name in ("claim", "renew", "fail", "release", "publish") and self.away[name] > 0:
            self.away[name] -= 1
            raise self.error()
        return super().__getattribute__(name)


@dataclass(frozen=True)
class AwayWorkspace(Workspace):
    away: Counter = field(default_factory=Counter)
    error: list[Callable[[], Exception]] = field(default_factory=list)

    def job_queue(self, owner, table):
        args = (self.database, owner, self.lease_seconds, table)
        return AwayQueue(*args, away=self.away, error=self.error[0])


@pytest.fixture
def workspace(database, tmp_path):
    options = {"kind": AwayWorkspace, "lease_seconds": 15.0}
    # Tracebacks with all their locals take longer to write here than the lease lasts.
    with workspace_on(database, tmp_path, **options) as made, capture_logs():
        yield made


@pytest.mark.process
def test_while_it_claims_and_writes_that_a_job_failed(workspace) -> None:
    errors = cycle((translated(), raw()))
    workspace.error.append(lambda: next(errors))
    workspace.away.update(claim=2, fail=2)
    onnx_model = undefined_below_zero(weights()).SerializeToString()
    job = calibrate(workspace, inputs_set(defined=False), onnx_model=onnx_model)
    with working(workspace):
        row = wait_for(workspace, job, ended)
        assert (row.status, row.attempt) == ("failed", 1)
        assert row.error["type"].endswith("invalid-dataset")
        behind = calibrate(workspace, logits_set())
        assert wait_for(workspace, behind, ended).status == "succeeded"
    assert not workspace.away.total()


def test_while_it_renews(database) -> None:
    away = Counter(renew=1)
    queue = AwayQueue(database, "owner", 0.3, models.Calibration, away=away, error=translated)
    row = queue_calibration(database)
    job = claimed(queue)
    before = stored(database, row.id).lease_until
    with renewed_lease(queue, job) as lost:
        assert wait_until(lambda: stored(database, row.id).lease_until > before)
    assert not away["renew"]
    assert not lost.is_set()


@pytest.mark.process
@BOTH_DIALECTS
def test_while_it_publishes(database, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr("service.jobs.worker.PAUSE_SECONDS", 0.1)
    with workspace_on(database, tmp_path, kind=AwayWorkspace) as made:
        made.error.append(translated)
        made.away.update(publish=1, release=1)
        job = calibrate(made, logits_set())
        row = finish(made, job)
        assert (row.status, row.attempt, row.error) == ("succeeded", 1, None)
        assert not made.away["publish"]
        assert not made.away["release"]

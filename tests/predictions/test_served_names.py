"""Who asks what a name means while others ask the same, and while it is written."""

import dataclasses
import threading
from contextlib import contextmanager

import pytest
from job_workspaces import calibrate, ended, evaluate, inputs_set, wait_for, working, workspace_on
from predictor import predictor_of
from runner_models import linear, rows, weights
from sqlalchemy import event
from sqlalchemy.exc import OperationalError
from storage_rows import tenant_of
from wrapped_store import WrappedStore

from service.calibrations.manage import get_calibration, promote_calibration
from service.errors import Overloaded
from service.jobs.acceptance import CallContext
from service.storage.artifact_store import ArtifactStore

NAME = "calibration"
ROWS = rows(2).tolist()
WAIT_SECONDS = 30.0


@pytest.fixture
def workspace(database, tmp_path):
    with workspace_on(database, tmp_path) as made:
        for seed in (0, 1):
            onnx_model = linear(weights(seed=seed)).SerializeToString()
            job = calibrate(made, inputs_set(300), onnx_model=onnx_model)
            with working(made):
                assert wait_for(made, job, ended).status == "succeeded"
        yield made


def test_what_is_queued_changes_no_name(workspace) -> None:
    """Names that are known need not be asked anew for it, and go on if the database goes away."""
    before = workspace.database.generation
    job = calibrate(workspace, inputs_set(300), onnx_model=linear(weights()).SerializeToString())
    evaluate(workspace, get_calibration(workspace, job.tenant_id, NAME), inputs_set(300))
    assert workspace.database.generation == before


@contextmanager
def transactions(database):
    """Collect the transactions of a database; the first waits until it may go on."""
    begun, may_go_on = [], threading.Event()

    def begin(connection) -> None:
        begun.append(connection)
        if len(begun) == 1:
            assert may_go_on.wait(WAIT_SECONDS)

    event.listen(database.engine, "begin", begin)
    try:
        yield begun, may_go_on
    finally:
        may_go_on.set()
        event.remove(database.engine, "begin", begin)


def test_who_asks_first_asks_for_all_who_ask_at_the_same_time(workspace) -> None:
    with predictor_of(workspace, max_models=2) as predictor:
        with transactions(workspace.database) as (begun, may_go_on):
            asked = [predictor.begin(NAME, ROWS) for _ in range(100)]
            predictor.settle()
            may_go_on.set()
            answers = [found.result(WAIT_SECONDS) for found in asked]
            # One reads what the name means, one the tables: neither is read 100 times.
            assert len(begun) == 2
        assert {answer["calibration"]["version"] for answer in answers} == {2}
        assert all(answer == answers[0] for answer in answers)


class GatedStore(WrappedStore):
    """A store whose first reader waits until he may go on."""

    def __init__(self, store: ArtifactStore) -> None:
        super().__init__(store)
        self.reached, self.may_go_on = threading.Event(), threading.Event()

    def local_path(self, key, sha256):
        if not self.reached.is_set():
            self.reached.set()
            assert self.may_go_on.wait(WAIT_SECONDS)
        return super().local_path(key, sha256)


def test_who_asks_after_a_write_does_not_join_who_asked_before(workspace) -> None:
    store = GatedStore(workspace.artifacts)
    slow = dataclasses.replace(workspace, artifacts=store)
    with predictor_of(slow, max_models=2) as predictor:
        early = predictor.begin(NAME, ROWS)
        assert store.reached.wait(WAIT_SECONDS)
        promote_calibration(CallContext(workspace, tenant_of(workspace.database)), f"{NAME}@1")
        late = predictor.begin(NAME, ROWS)
        assert late.result(WAIT_SECONDS)["calibration"]["version"] == 1
        store.may_go_on.set()
        assert early.result(WAIT_SECONDS)["calibration"]["version"] == 2
        assert predictor.ask(NAME, ROWS)["calibration"]["version"] == 1


class FailingStore(WrappedStore):
    """A store that fails in a way that is no business of a store's."""

    def __init__(self, store: ArtifactStore, error: Exception) -> None:
        super().__init__(store)
        self._error = error

    def local_path(self, *_: str):
        raise self._error


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (ZeroDivisionError(), ZeroDivisionError),
        (OperationalError("SELECT", {}, Exception("gone")), Overloaded),
    ],
    ids=["a bug", "a database that is away"],
)
def test_whoever_waits_is_told_whatever_it_was(workspace, error, told) -> None:
    broken = dataclasses.replace(workspace, artifacts=FailingStore(workspace.artifacts, error))
    with predictor_of(broken) as predictor:
        asked = [predictor.begin(NAME, ROWS) for _ in range(3)]
        assert [type(found.exception(WAIT_SECONDS)) for found in asked] == [told] * 3
    with predictor_of(workspace) as predictor:
        assert predictor.ask(NAME, ROWS)["calibration"]["version"] == 2

"""A calibration that is deleted while it is read counts as deleted before."""

import dataclasses
import os
import signal

import pytest
from databases import BOTH_DIALECTS
from job_workspaces import (
    calibrate,
    inputs_set,
    logits_set,
    predictor_of,
    succeed,
    workspace_on,
)
from object_stores import WrappedStore
from runner_children import wait_until
from runner_models import linear, rows, weights
from stored_rows import tenant_of

from service.calibrations.manage import delete_calibration
from service.errors import ArtifactDamaged, NotFound
from service.exports.export import exported_file
from service.jobs.acceptance import CallContext
from service.reports.comparison.compare import compare_calibrations
from service.storage.artifact_store import ArtifactStore

pytestmark = pytest.mark.process
NAME = "calibration"


class ForgetfulStore(WrappedStore):
    """A store that lets something happen just before the first file is read."""

    def __init__(self, store: ArtifactStore, before) -> None:
        super().__init__(store)
        self._before = before

    def _happen(self) -> None:
        before, self._before = self._before, lambda: None
        before()

    def local_path(self, key, sha256):
        self._happen()
        return super().local_path(key, sha256)

    def get_bytes(self, key, sha256):
        self._happen()
        return super().get_bytes(key, sha256)


@pytest.fixture
def workspace(database, tmp_path):
    with workspace_on(database, tmp_path, max_processes=1) as made:
        yield made


def calibrated(workspace, *, seed: int = 0):
    onnx_model = linear(weights(seed=seed)).SerializeToString()
    job = calibrate(workspace, inputs_set(300), onnx_model=onnx_model)
    return succeed(workspace, job)


def ask(workspace, reference):
    with predictor_of(workspace) as predictor:
        return predictor.ask(reference, rows(3).tolist())


def deleting(workspace, row):
    return lambda: delete_calibration(CallContext(workspace, row.tenant_id), str(row.id))


def reading_through(workspace, before):
    return dataclasses.replace(workspace, artifacts=ForgetfulStore(workspace.artifacts, before))


def exported(workspace, reference):
    with exported_file(CallContext(workspace, tenant_of(workspace.database)), reference) as found:
        return found.path.read_bytes()


@pytest.mark.parametrize(
    ("read", "was_exported"), [(ask, False), (exported, False), (exported, True)]
)
def test_a_version_deleted_while_it_is_read_is_not_found(workspace, read, was_exported) -> None:
    row = calibrated(workspace)
    if was_exported:
        assert exported(workspace, f"{NAME}@1")
    slow = reading_through(workspace, deleting(workspace, row))
    with pytest.raises(NotFound):
        read(slow, f"{NAME}@1")


@pytest.mark.parametrize(("read", "role"), [(ask, "model"), (exported, "samples")])
def test_a_lost_file_is_reported_as_damage_without_its_key(workspace, read, role) -> None:
    row = calibrated(workspace)
    keys = [artifact.key for artifact in row.artifacts if artifact.role == role]
    slow = reading_through(workspace, lambda: workspace.artifacts.delete(keys))
    with pytest.raises(ArtifactDamaged) as caught:
        read(slow, f"{NAME}@1")
    assert str(row.id) not in caught.value.message


def test_a_name_means_the_next_version_if_one_is_deleted_while_it_loads(workspace) -> None:
    calibrated(workspace)
    second = calibrated(workspace, seed=1)
    slow = reading_through(workspace, deleting(workspace, second))
    assert ask(slow, NAME)["calibration"]["version"] == 1


@pytest.mark.parametrize("seed", [0, 1], ids=["the same model", "another model"])
def test_a_new_calibration_answers_under_the_name_of_a_deleted_one(
    workspace, monkeypatch, seed
) -> None:
    """The deleted one's model is about to be loaded."""
    first = calibrated(workspace)
    made = []
    spawner = workspace.runners._spawner
    take = spawner.take

    def take_late():
        monkeypatch.setattr(spawner, "take", take)
        deleting(workspace, first)()
        made.append(calibrated(workspace, seed=seed))
        return take()

    monkeypatch.setattr(spawner, "take", take_late)
    with predictor_of(workspace) as predictor:
        answer = predictor.ask(NAME, rows(3).tolist())["calibration"]
        assert answer["id"] == str(made[0].id) != str(first.id)
        assert predictor.ask(NAME, rows(3).tolist())["calibration"] == answer


def test_a_model_outlives_the_version_that_it_was_loaded_for(workspace) -> None:
    first, second = calibrated(workspace), calibrated(workspace)
    with predictor_of(workspace) as predictor:
        assert predictor.ask(f"{NAME}@1", rows(3).tolist())
        deleting(workspace, first)()
        assert predictor.ask(NAME, rows(3).tolist())["calibration"]["id"] == str(second.id)
        with pytest.raises(NotFound):
            predictor.ask(f"{NAME}@1", rows(3).tolist())


@BOTH_DIALECTS
def test_a_version_deleted_while_it_answers_is_not_found(workspace) -> None:
    row = calibrated(workspace)
    with predictor_of(workspace) as predictor:
        assert predictor.ask(NAME, rows(3).tolist())
        child = predictor.models.states()[0].pid
        os.kill(child, signal.SIGSTOP)
        prediction = predictor.begin(NAME, rows(3).tolist())
        assert wait_until(lambda: predictor.models.running == 1)
        deleting(workspace, row)()
        os.kill(child, signal.SIGKILL)
        with pytest.raises(NotFound):
            prediction.result(60)


def test_a_calibration_deleted_while_it_is_compared_is_not_found(workspace) -> None:
    jobs = [
        succeed(workspace, calibrate(workspace, logits_set(), evaluation=logits_set(seed=9)))
        for _ in range(2)
    ]
    slow = reading_through(workspace, deleting(workspace, jobs[0]))
    with pytest.raises(NotFound):
        compare_calibrations(slow, jobs[0].tenant_id, [f"{NAME}@1", f"{NAME}@2"])

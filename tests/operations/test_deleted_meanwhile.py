"""A calibration that is deleted while it is read is as one that was deleted before."""

import dataclasses
import json

import pytest
from job_workspaces import calibrate, ended, inputs_set, logits_set, wait_for, working, workspace_on
from runner_models import linear, rows, weights

from service.bodies import read_json_body
from service.errors import ArtifactDamaged, NotFound
from service.operations.compare import compare_calibrations
from service.operations.export_onnx_model import exported_file
from service.operations.manage_calibrations import delete_calibration
from service.operations.predict import predict
from service.runner import RunnerPool
from service.storage.artifacts import ArtifactStore

NAME = "calibration"


class ForgetfulStore(ArtifactStore):
    """A store that lets something happen just before the first file is read."""

    def __init__(self, store: ArtifactStore, before) -> None:
        super().__init__(store._store)
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
    with working(workspace):
        row = wait_for(workspace, job, ended)
    assert row.status == "succeeded", row.error
    return row


def ask(workspace, tenant_id, reference):
    body = {"calibration": reference, "inputs": rows(3).tolist()}
    request = read_json_body(json.dumps(body).encode(), limits=workspace.limits)
    return predict(workspace, tenant_id, request)


def deleting(workspace, row):
    return lambda: delete_calibration(workspace, row.tenant_id, str(row.id))


def reading_through(workspace, before):
    return dataclasses.replace(workspace, artifacts=ForgetfulStore(workspace.artifacts, before))


def test_a_version_that_goes_while_it_is_loaded_is_not_found(workspace) -> None:
    row = calibrated(workspace)
    slow = reading_through(workspace, deleting(workspace, row))
    with pytest.raises(NotFound):
        ask(slow, row.tenant_id, f"{NAME}@1")


def test_a_name_means_the_next_version_when_one_goes_while_it_is_loaded(workspace) -> None:
    calibrated(workspace)
    second = calibrated(workspace, seed=1)
    slow = reading_through(workspace, deleting(workspace, second))
    assert ask(slow, second.tenant_id, NAME).calibration.ref.version == 1


def test_a_file_that_is_gone_by_itself_is_damage_and_no_key_is_told(workspace) -> None:
    row = calibrated(workspace)
    keys = [artifact.key for artifact in row.artifacts if artifact.role == "model"]
    slow = reading_through(workspace, lambda: workspace.artifacts.delete(keys))
    with pytest.raises(ArtifactDamaged) as caught:
        ask(slow, row.tenant_id, NAME)
    assert str(row.id) not in caught.value.message


def exported(workspace, row):
    with exported_file(workspace, row.tenant_id, f"{NAME}@1") as found:
        return found.path.read_bytes()


@pytest.mark.parametrize("was_made", [False, True])
def test_a_calibration_that_goes_while_it_is_exported_is_not_found(workspace, was_made) -> None:
    row = calibrated(workspace)
    assert ask(workspace, row.tenant_id, NAME)
    if was_made:
        assert exported(workspace, row)
    slow = reading_through(workspace, deleting(workspace, row))
    with pytest.raises(NotFound):
        exported(slow, row)


def test_a_file_of_an_export_that_is_gone_by_itself_is_damage(workspace) -> None:
    row = calibrated(workspace)
    keys = [artifact.key for artifact in row.artifacts if artifact.role == "calibration"]
    slow = reading_through(workspace, lambda: workspace.artifacts.delete(keys))
    assert ask(workspace, row.tenant_id, NAME)
    with pytest.raises(ArtifactDamaged):
        exported(slow, row)


class SlowPool:
    """A pool that lets something happen just before the first prediction."""

    def __init__(self, pool: RunnerPool, before) -> None:
        self._pool, self._before = pool, before

    def predict(self, *args, **options):
        before, self._before = self._before, lambda: None
        before()
        return self._pool.predict(*args, **options)


def test_a_version_that_goes_before_its_model_is_loaded_again_is_not_found(workspace) -> None:
    first = calibrated(workspace)
    assert ask(workspace, first.tenant_id, f"{NAME}@1")
    calibrated(workspace, seed=1)  # its model takes the only place
    pool = SlowPool(workspace.runners, deleting(workspace, first))
    slow = dataclasses.replace(workspace, runners=pool)
    with pytest.raises(NotFound):
        ask(slow, first.tenant_id, f"{NAME}@1")


def test_a_calibration_that_goes_while_it_is_compared_is_not_found(workspace) -> None:
    jobs = [
        calibrate(workspace, logits_set(seed=seed), evaluation=logits_set(seed=9))
        for seed in (0, 1)
    ]
    with working(workspace):
        for job in jobs:
            assert wait_for(workspace, job, ended).status == "succeeded"
    slow = reading_through(workspace, deleting(workspace, jobs[0]))
    with pytest.raises(NotFound):
        compare_calibrations(slow, jobs[0].tenant_id, [f"{NAME}@1", f"{NAME}@2"])

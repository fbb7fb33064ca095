"""A read that has begun goes on with the files of a calibration that is deleted meanwhile."""

import dataclasses
import shutil
from contextlib import contextmanager
from functools import partial

import pytest
from databases import put_sqlite_file
from job_workspaces import (
    calibrate,
    inputs_set,
    predictor_of,
    reread,
    succeed,
    workspace_on,
)
from object_stores import WrappedStore
from runner_models import linear, rows, weights
from stored_rows import tenant_of

from service.calibrations.manage import delete_calibration
from service.errors import ArtifactDamaged, NotFound
from service.exports.export import exported_file
from service.jobs.acceptance import CallContext
from service.reports.samples import list_samples
from service.storage.artifact_store import ArtifactStore
from service.storage.database import open_database

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


def calibrated(workspace, *, seed: int):
    sets = {"evaluation": inputs_set(60, seed=9)}
    onnx_model = linear(weights(seed=seed)).SerializeToString()
    return succeed(workspace, calibrate(workspace, inputs_set(60), onnx_model=onnx_model, **sets))


@contextmanager
def opened(folder):
    database = open_database(f"sqlite:///{folder / 'howsure.sqlite3'}")
    with workspace_on(database, folder, max_processes=1) as workspace:
        yield workspace
    database.dispose()


@pytest.fixture(scope="module")
def template(tmp_path_factory):
    """A folder with three versions, of which two have the same model, and their rows."""
    folder = tmp_path_factory.mktemp("versions")
    put_sqlite_file(f"sqlite:///{folder / 'howsure.sqlite3'}")
    with opened(folder) as workspace:
        return folder, [calibrated(workspace, seed=seed) for seed in (0, 0, 1)]


@pytest.fixture
def workspace(template, tmp_path):
    shutil.copytree(template[0], tmp_path, dirs_exist_ok=True)
    with opened(tmp_path) as workspace:
        yield workspace


@pytest.fixture
def versions(template, workspace):
    return [reread(workspace, row) for row in template[1]]


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


def listed(workspace, reference):
    tenant_id = tenant_of(workspace.database)
    return list_samples(workspace, tenant_id, reference, kind="surest_errors").document["samples"]


def test_a_version_deleted_while_it_loads_answers_once_more(workspace, versions) -> None:
    slow = reading_through(workspace, deleting(workspace, versions[2]))
    assert ask(slow, f"{NAME}@3")["calibration"]["version"] == 3
    with pytest.raises(NotFound):
        ask(workspace, f"{NAME}@3")


def test_a_list_of_samples_goes_on_if_its_version_is_deleted(workspace, versions) -> None:
    before = listed(workspace, f"{NAME}@1")
    workspace.missed.pop((versions[0].id, "surest_errors", 1))
    slow = reading_through(workspace, deleting(workspace, versions[0]))
    assert listed(slow, f"{NAME}@1") == before


def test_a_lost_file_is_reported_as_damage_without_its_key(workspace, versions) -> None:
    for row, read, role in zip(versions, (ask, exported), ("model", "samples"), strict=False):
        keys = [artifact.key for artifact in row.artifacts if artifact.role == role]
        slow = reading_through(workspace, partial(workspace.artifacts.delete, keys))
        with pytest.raises(ArtifactDamaged) as caught:
            read(slow, f"{NAME}@{row.version}")
        assert str(row.id) not in caught.value.message


def test_a_model_outlives_the_version_that_it_was_loaded_for(workspace, versions) -> None:
    with predictor_of(workspace) as predictor:
        assert predictor.ask(f"{NAME}@1", rows(3).tolist())
        deleting(workspace, versions[0])()
        answer = predictor.ask(f"{NAME}@2", rows(3).tolist())
        assert answer["calibration"]["id"] == str(versions[1].id)
        with pytest.raises(NotFound):
            predictor.ask(f"{NAME}@1", rows(3).tolist())

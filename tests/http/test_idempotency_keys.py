"""Repeats with the same key make one calibration, also at once from two services."""

import uuid
from contextlib import ExitStack
from functools import partial

import pytest
from job_workspaces import logits_set, uploaded, workspace_on
from sqlalchemy import func, select
from stored_rows import at_once, tenant_of

import models
from service.calibrations.start import start_calibration
from service.calibrations.upload.upload_form import CalibrationUpload
from service.http.idempotency import Started, run_idempotent
from service.jobs.acceptance import CallContext
from service.storage.artifact_store import open_artifact_store
from service.storage.calibrations import CalibrationRepository
from service.storage.database import open_database
from service.storage.idempotency_keys import KeyedRequest, KeyTaken, keep_key, made_before
from service.storage.tenants import ALL_TENANTS

REQUEST = KeyedRequest("a key", "0" * 64)


def make(database, tenant_id: uuid.UUID, request: KeyedRequest) -> uuid.UUID:
    """Make a calibration and keep the key, in one transaction."""
    calibration_id = uuid.uuid4()
    with database.session(ALL_TENANTS) as session:
        columns = {"config": {}, "data": {}, "onnx_model": None, "versions": {}, "warnings": []}
        row = models.Calibration(id=calibration_id, name="calibration", **columns)
        CalibrationRepository(session, tenant_id).add(row)
        keep_key(session, tenant_id, request, calibration_id)
    return calibration_id


def test_a_key_is_of_one_calibration_and_lives_as_long(database, tmp_path) -> None:
    """The second of two transactions is rolled back."""
    tenant_id = tenant_of(database)
    first = make(database, tenant_id, REQUEST)
    with pytest.raises(KeyTaken):
        make(database, tenant_id, REQUEST)
    with database.reading(ALL_TENANTS) as session:
        assert made_before(session, tenant_id, REQUEST) == first
        assert session.scalars(select(models.Calibration.id)).all() == [first]
    with database.session(ALL_TENANTS) as session:
        repository = CalibrationRepository(session, tenant_id)
        repository.request_cancel(first)
        repository.delete(first)
    with database.reading(ALL_TENANTS) as session:
        assert made_before(session, tenant_id, REQUEST) is None
        assert session.scalar(select(func.count()).select_from(models.IdempotencyKey)) == 0


@pytest.mark.parametrize("dialect", ["postgresql"])
@pytest.mark.parametrize("rounds", [4, pytest.param(30, marks=pytest.mark.slow)])
def test_repeats_on_two_services_at_once_make_one(database, database_url, tmp_path, rounds) -> None:
    """Six at a time, on two connections to the database and one store of artifacts."""
    tenant_id = tenant_of(database)
    with ExitStack() as stack:
        second = open_database(database_url)
        stack.callback(second.dispose)
        services = [stack.enter_context(workspace_on(one, tmp_path)) for one in (database, second)]
        file = uploaded(services[0].spool.path, logits_set(20), "set.npz")
        upload = CalibrationUpload({"calibration": (file, None)})

        def repeat(workspace, request: KeyedRequest) -> Started:
            ctx = CallContext(workspace, tenant_id, request=request)
            start = partial(start_calibration, ctx, upload)
            return run_idempotent(workspace, tenant_id, request, start)

        for turn in range(rounds):
            request = KeyedRequest(str(turn), "0" * 64)
            results = at_once([partial(repeat, one, request) for one in services * 3])
            assert len({started.calibration_id for started in results}) == 1
            assert [started.replayed for started in results].count(False) == 1

    with database.reading(ALL_TENANTS) as session:
        versions = session.scalars(select(models.Calibration.version)).all()
        keys = session.scalars(select(models.Artifact.key)).all()
    assert sorted(versions) == list(range(1, rounds + 1))
    assert open_artifact_store(str(tmp_path / "artifacts")).keys() == sorted(keys)

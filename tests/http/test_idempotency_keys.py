"""Repeats with the same key make one calibration, also at once from two services."""

import uuid
from collections import Counter
from contextlib import ExitStack
from functools import partial

import pytest
from job_workspaces import logits_set, uploaded, workspace_on
from sqlalchemy import func, select
from stored_rows import at_once, tenant_of

import models
from service.calibrations.start import start_calibration
from service.calibrations.upload_form import CalibrationUpload
from service.http.idempotency import Started, run_idempotent
from service.jobs.acceptance import CallContext
from service.storage.calibrations import CalibrationRepository
from service.storage.database import open_database
from service.storage.idempotency_keys import KeyedRequest, KeyTaken, keep_key, made_before
from service.storage.tenants import ALL_TENANTS

REQUEST = KeyedRequest("a key", "0" * 64)
# The others leave out what takes long and is not what they race for.
ROUNDS_A_WHOLE_UPLOAD = 9


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
@pytest.mark.parametrize("rounds", [18, pytest.param(100, marks=pytest.mark.slow)])
def test_concurrent_repeats_on_two_services_make_one(
    database, database_url, tmp_path, rounds
) -> None:
    """Two to ten at a time, on two connections to the database and one store of artifacts."""
    tenant_id, content = tenant_of(database), logits_set(20)
    with ExitStack() as stack:
        second = open_database(database_url)
        stack.callback(second.dispose)
        services = [
            stack.enter_context(workspace_on(opened, tmp_path)) for opened in (database, second)
        ]
        file = uploaded(services[0].spool.path, content, "set.npz")
        upload = CalibrationUpload({"calibration": (file, None)})

        def repeat(number: int, request: KeyedRequest) -> Started:
            workspace = services[number % 2]
            start = partial(make, workspace.database, tenant_id, request)
            if int(request.key) % ROUNDS_A_WHOLE_UPLOAD == 0:
                ctx = CallContext(workspace, tenant_id, request=request)
                start = partial(start_calibration, ctx, upload)
            return run_idempotent(workspace, tenant_id, request, start)

        for turn in range(rounds):
            request = KeyedRequest(str(turn), "0" * 64)
            repeats = [partial(repeat, number, request) for number in range(2 + turn % 9)]
            found = at_once(repeats)
            assert len({started.calibration_id for started in found}) == 1
            assert Counter(started.replayed for started in found)[False] == 1

    with database.reading(ALL_TENANTS) as session:
        versions = session.scalars(
            select(models.Calibration.version).order_by(models.Calibration.version)
        ).all()
        keys = session.scalars(select(models.Artifact.key)).all()
    assert versions == list(range(1, rounds + 1))
    stored = [path for path in (tmp_path / "artifacts").rglob("*") if path.is_file()]
    assert sorted(str(path.relative_to(tmp_path / "artifacts")) for path in stored) == sorted(keys)

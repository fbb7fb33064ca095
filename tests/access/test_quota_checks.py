"""Transactions of a tenant run one after the other before quotas are checked."""

import uuid

import pytest
from databases import BOTH_DIALECTS
from sqlalchemy.orm import Session
from stored_rows import add_tenant, held_up, tenant_of

import models
from service.access.quotas import enforce_quotas
from service.access.rate_limits import TenantLimits
from service.errors import JobLimitReached, StorageLimitReached
from service.storage.artifact_rows import NewArtifact
from service.storage.calibrations import CalibrationRepository
from service.storage.database import Database
from service.storage.tenants import ALL_TENANTS, stored_bytes, unfinished_jobs

FILE_BYTES, ROW_BYTES = 90, len("{}{}{}[][]")
SIZE = FILE_BYTES + ROW_BYTES


def add(
    session: Session, tenant_id: uuid.UUID, limits: TenantLimits, *, key: str | None = None
) -> str:
    """Queue a calibration with one file, as an upload does; return the file's key."""
    made = uuid.uuid4()
    key = key or f"calibrations/{made}/model-0"
    columns = {"config": {}, "data": {}, "onnx_model": None, "versions": {}, "warnings": []}
    columns |= {"findings": []}
    file = NewArtifact("model", 0, "m.onnx", key, "0" * 64, FILE_BYTES)
    row = models.Calibration(id=made, name=f"c{made}", **columns)
    CalibrationRepository(session, tenant_id).add(row, [file])
    enforce_quotas(session, tenant_id, limits)
    return key


LIMITS = {
    "jobs": (TenantLimits(jobs=1), JobLimitReached),
    "bytes": (TenantLimits(stored_bytes=2 * SIZE - 1), StorageLimitReached),
}


@BOTH_DIALECTS
@pytest.mark.parametrize(("limits", "error"), LIMITS.values(), ids=LIMITS)
def test_of_two_concurrent_transactions_one_sees_what_the_other_added(
    database: Database, limits: TenantLimits, error: type[Exception]
) -> None:
    ours, theirs = tenant_of(database), add_tenant(database, "other")

    def second() -> None:
        with database.session(ALL_TENANTS) as session:
            add(session, ours, limits)

    with pytest.raises(error):
        held_up(database.session(ALL_TENANTS), lambda session: add(session, ours, limits), second)
    with database.reading(ALL_TENANTS) as session:
        assert (unfinished_jobs(session, ours), stored_bytes(session, ours)) == (1, SIZE)
        assert (unfinished_jobs(session, theirs), stored_bytes(session, theirs)) == (0, 0)
    with database.session(ALL_TENANTS) as session:
        add(session, theirs, limits)


def test_a_shared_file_counts_once(database: Database) -> None:
    ours = tenant_of(database)
    with database.session(ALL_TENANTS) as session:
        key = add(session, ours, TenantLimits())
        add(session, ours, TenantLimits(), key=key)
        assert stored_bytes(session, ours) == SIZE + ROW_BYTES
        assert unfinished_jobs(session, ours) == 2

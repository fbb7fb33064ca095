"""Calibrations of tests: queued, claimed, finished."""

import hashlib
import uuid
from collections.abc import Sequence

from sqlalchemy import select, update

import models
from service.storage.calibrations import CalibrationRepository, NewArtifact
from service.storage.database import Database
from service.storage.job_queue import ClaimedJob, JobQueue
from service.storage.tenants import default_tenant_id


def tenant_of(database: Database) -> uuid.UUID:
    with database.reading() as session:
        return default_tenant_id(session)


def add_tenant(database: Database, name: str) -> uuid.UUID:
    tenant_id = uuid.uuid4()
    with database.session() as session:
        session.add(models.Tenant(id=tenant_id, name=name))
    return tenant_id


def new_artifact(
    calibration_id: uuid.UUID,
    role: models.ArtifactRole = "calibration",
    *,
    position: int = 0,
    key: str | None = None,
) -> NewArtifact:
    key = key or f"calibrations/{calibration_id}/{role}-{position}"
    sha256 = hashlib.sha256(key.encode()).hexdigest()
    return NewArtifact(role, position, f"{role}.npz", key, sha256, 7)


def queue_calibration(
    database: Database,
    name: str = "digits",
    *,
    tenant_id: uuid.UUID | None = None,
    artifacts: Sequence[NewArtifact] = (),
    calibration_id: uuid.UUID | None = None,
) -> models.Calibration:
    with database.session() as session:
        tenant_id = tenant_id or default_tenant_id(session)
        return CalibrationRepository(session, tenant_id).create(
            calibration_id or uuid.uuid4(),
            name=name,
            config={"name": name, "bins": 10},
            data={"samples": 100},
            onnx_model=None,
            versions={"numpy": "2"},
            artifacts=artifacts,
            warnings=[],
        )


def queue_of(database: Database, owner: str = "owner", lease_seconds: float = 60.0) -> JobQueue:
    return JobQueue(database, owner, lease_seconds)


def finish(
    database: Database, calibration: models.Calibration, status: models.JobStatus
) -> None:
    """Bring the only job of the queue to an end."""
    queue = queue_of(database)
    job = queue.claim()
    assert job is not None
    assert job.calibration_id == calibration.id
    if status == "succeeded":
        queue.publish(job, rows=[], artifacts=[], accuracy={"1": 0.9}, serve={"1": "margin"})
    elif status == "failed":
        assert queue.fail(job, {"title": "Test"})
    else:
        assert queue.cancel(job)


def finished_calibration(
    database: Database,
    name: str = "digits",
    *,
    status: models.JobStatus = "succeeded",
    tenant_id: uuid.UUID | None = None,
    artifacts: Sequence[NewArtifact] = (),
) -> models.Calibration:
    row = queue_calibration(database, name, tenant_id=tenant_id, artifacts=artifacts)
    finish(database, row, status)
    return stored(database, row.id)


def stored(database: Database, calibration_id: uuid.UUID) -> models.Calibration:
    with database.reading() as session:
        return session.scalars(
            select(models.Calibration).where(models.Calibration.id == calibration_id)
        ).one()


def promote(database: Database, name: str, version: int | None) -> None:
    with database.session() as session:
        session.execute(
            update(models.CalibrationName)
            .where(models.CalibrationName.name == name)
            .values(promoted_version=version)
        )


def claimed(queue: JobQueue) -> ClaimedJob:
    job = queue.claim()
    assert job is not None
    return job

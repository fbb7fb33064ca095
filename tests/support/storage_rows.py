"""Calibrations and evaluations of tests: queued, claimed, finished."""

import hashlib
import uuid
from collections.abc import Sequence

from sqlalchemy import select, update

import models
from service.jobs.queue import ClaimedJob, JobQueue
from service.storage.artifact_rows import NewArtifact
from service.storage.calibrations import CalibrationRepository
from service.storage.database import Database
from service.storage.evaluations import EvaluationRepository
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
        return CalibrationRepository(session, tenant_id).add(
            models.Calibration(
                id=calibration_id or uuid.uuid4(),
                name=name,
                config={"name": name, "bins": 10},
                data={"samples": 100},
                onnx_model=None,
                versions={"numpy": "2"},
                warnings=[],
            ),
            artifacts,
        )


def queue_evaluation(
    database: Database,
    calibration: models.Calibration,
    name: str = "rotated",
    *,
    artifacts: Sequence[NewArtifact] = (),
    evaluation_id: uuid.UUID | None = None,
) -> models.Evaluation:
    with database.session() as session:
        return EvaluationRepository(session, calibration.tenant_id).create(
            evaluation_id or uuid.uuid4(),
            calibration_id=calibration.id,
            name=name,
            labelled=True,
            data={"samples": 50},
            artifacts=artifacts,
        )


def queue_of(database: Database, owner: str = "owner", lease_seconds: float = 60.0) -> JobQueue:
    return JobQueue(database, owner, lease_seconds)


def evaluation_queue_of(
    database: Database, owner: str = "owner", lease_seconds: float = 60.0
) -> JobQueue:
    return JobQueue(database, owner, lease_seconds, table=models.Evaluation)


def finish(database: Database, calibration: models.Calibration, status: models.JobStatus) -> None:
    """Bring the only job of the queue to an end."""
    values = {"accuracy": {"1": 0.9}, "serve": {"1": "margin"}}
    _finish(queue_of(database), calibration.id, status, values)


def _finish(
    queue: JobQueue, job_id: uuid.UUID, status: models.JobStatus, values: dict[str, object]
) -> None:
    """End a claimed job; of one that succeeds the sets are kept, for whoever counts its files."""
    job = claimed(queue)
    assert job.id == job_id
    if status == "succeeded":
        queue.publish(job, rows=[], artifacts=[], keep_sets=True, **values)
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


def finished_evaluation(
    database: Database,
    calibration: models.Calibration,
    name: str = "rotated",
    *,
    status: models.JobStatus = "succeeded",
    artifacts: Sequence[NewArtifact] = (),
) -> models.Evaluation:
    row = queue_evaluation(database, calibration, name, artifacts=artifacts)
    _finish(evaluation_queue_of(database), row.id, status, {"result": {"shifted": False}})
    return stored_evaluation(database, row.id)


def stored(database: Database, calibration_id: uuid.UUID) -> models.Calibration:
    with database.reading() as session:
        return session.scalars(
            select(models.Calibration).where(models.Calibration.id == calibration_id)
        ).one()


def stored_evaluation(database: Database, evaluation_id: uuid.UUID) -> models.Evaluation:
    with database.reading() as session:
        return session.scalars(
            select(models.Evaluation).where(models.Evaluation.id == evaluation_id)
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

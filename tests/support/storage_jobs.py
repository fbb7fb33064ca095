"""The two kinds of jobs behind one interface, so that every law of the queue is tried on both."""

import uuid
from functools import cached_property

from storage_rows import (
    evaluation_queue_of,
    finished_calibration,
    queue_calibration,
    queue_evaluation,
    queue_of,
    stored,
    stored_evaluation,
    tenant_of,
)

import models
from service.jobs.queue import ClaimedJob, JobQueue
from service.storage.calibrations import CalibrationRepository
from service.storage.database import Database
from service.storage.evaluations import EvaluationRepository


class CalibrationJobs:
    kind = "calibration"
    table = models.Calibration
    result = {"accuracy": {"1": 0.9}}  # noqa: RUF012  (never written to)

    def __init__(self, database: Database) -> None:
        self.database = database

    def put(self, *, tenant_id: uuid.UUID | None = None) -> models.Calibration:
        return queue_calibration(self.database, tenant_id=tenant_id)

    def queue_of(self, owner: str = "owner", lease_seconds: float = 60.0) -> JobQueue:
        return queue_of(self.database, owner, lease_seconds)

    def stored(self, row_id: uuid.UUID) -> models.Calibration:
        return stored(self.database, row_id)

    def request_cancel(self, row: models.Calibration) -> None:
        with self.database.session() as session:
            CalibrationRepository(session, tenant_of(self.database)).request_cancel(row.id)

    def first_claim(self, row: models.Calibration) -> ClaimedJob:
        return ClaimedJob(row.id, row.tenant_id, attempt=1)

    def calibration_id(self, row: models.Calibration) -> uuid.UUID:
        return row.id


class EvaluationJobs:
    kind = "evaluation"
    table = models.Evaluation
    result = {"result": {"shifted": True}}  # noqa: RUF012  (never written to)

    def __init__(self, database: Database) -> None:
        self.database = database

    @cached_property
    def calibration(self) -> models.Calibration:
        return finished_calibration(self.database)

    def put(self, *, tenant_id: uuid.UUID | None = None) -> models.Evaluation:
        calibration = self.calibration
        if tenant_id is not None:
            calibration = finished_calibration(self.database, tenant_id=tenant_id)
        return queue_evaluation(self.database, calibration, f"set {uuid.uuid4()}")

    def queue_of(self, owner: str = "owner", lease_seconds: float = 60.0) -> JobQueue:
        return evaluation_queue_of(self.database, owner, lease_seconds)

    def stored(self, row_id: uuid.UUID) -> models.Evaluation:
        return stored_evaluation(self.database, row_id)

    def request_cancel(self, row: models.Evaluation) -> None:
        with self.database.session() as session:
            repository = EvaluationRepository(session, tenant_of(self.database))
            repository.request_cancel(row.calibration_id, row.name)

    def first_claim(self, row: models.Evaluation) -> ClaimedJob:
        return ClaimedJob(row.calibration_id, row.tenant_id, attempt=1, evaluation_id=row.id)

    def calibration_id(self, row: models.Evaluation) -> uuid.UUID:
        return row.calibration_id


Jobs = CalibrationJobs | EvaluationJobs
JOB_KINDS = (CalibrationJobs, EvaluationJobs)

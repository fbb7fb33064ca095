"""The resources of all operations: built once by the composition root and passed down."""

import threading
from dataclasses import dataclass, field
from uuid import UUID

from howsure.report.confusion import CountedErrors
from howsure.statistics.errors_by_class import LabelledSamples
from service.child.requests.limits import BodyLimits
from service.jobs.queue import JobQueue, JobTable
from service.jobs.samples import KeepInputs
from service.jobs.shards import ShardRunner
from service.lru_cache import LruCache
from service.metrics.metrics import Metrics
from service.predictions.served_calibration import ServedCalibration
from service.reports.error_samples import ErrorSamples, Kind
from service.runner.messages.limits import DatasetLimits
from service.runner.pool import RunnerPool
from service.storage.artifact_store import ArtifactStore
from service.storage.database import Database
from service.storage.file_locks import SpoolFolder

LABELLED_BYTES = 64 * 2**20
SERVED_BYTES = 128 * 2**20


@dataclass(frozen=True)
class Limits:
    """The limits that operations enforce; sizes in bytes.

    ``max_row_passes`` limits the rows of a set times the runs of its model, ``job_seconds`` the
    time that they take.
    """

    datasets: DatasetLimits
    bodies: BodyLimits
    max_row_passes: int = 20_000_000
    job_seconds: float = 21600.0


@dataclass(frozen=True)
class Workspace:
    """Database, artifact store, child processes and limits of one process of the service.

    ``shards`` runs the rows of jobs. ``keep_inputs`` chooses the samples of a calibration set that
    stay stored when its job has succeeded.

    ``job_available`` is released for every calibration queued here, so an idle worker of this
    process starts at once. Workers find jobs that are queued elsewhere by polling.

    ``served``, ``labelled``, ``missed`` and ``confusions`` cache data of finished calibrations,
    which never change: what a prediction needs, the labelled samples of Top-1 by ascending
    uncertainty and by set, lists of wrong predictions, and counts of accepted answers by label and
    class.
    """

    database: Database
    artifacts: ArtifactStore
    runners: RunnerPool
    spool: SpoolFolder
    shards: ShardRunner
    keep_inputs: KeepInputs
    lease_seconds: float
    limits: Limits
    served: LruCache[UUID, ServedCalibration] = field(
        default_factory=lambda: LruCache(SERVED_BYTES, lambda served: served.n_bytes)
    )
    labelled: LruCache[tuple[UUID, str], LabelledSamples] = field(
        default_factory=lambda: LruCache(LABELLED_BYTES, lambda found: found.nbytes)
    )
    missed: LruCache[tuple[UUID, Kind, int], ErrorSamples] = field(
        default_factory=lambda: LruCache(64)
    )
    confusions: LruCache[tuple[UUID, float | None], CountedErrors] = field(
        default_factory=lambda: LruCache(256)
    )
    metrics: Metrics = field(default_factory=Metrics)
    job_available: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))

    def job_queue(self, owner: str, table: type[JobTable]) -> JobQueue:
        """Return the queue of a table's jobs for this owner."""
        return JobQueue(self.database, owner, self.lease_seconds, table)

"""What every operation works with: built once by the composition root, passed down."""

import threading
from dataclasses import dataclass, field

from service.bodies.limits import BodyLimits
from service.datasets import DatasetLimits
from service.metrics import Metrics
from service.operations.kept_samples import KeepInputs
from service.operations.labelled_cache import LabelledCache
from service.operations.missed_samples import MissedCache
from service.operations.served import ServedCache
from service.operations.shard_runner import ShardRunner
from service.runner import RunnerPool
from service.storage.artifacts import ArtifactStore
from service.storage.database import Database
from service.storage.job_queue import JobQueue, JobTable
from service.storage.spool_folder import SpoolFolder


@dataclass(frozen=True)
class Limits:
    """The limits that operations enforce; sizes in bytes.

    ``max_row_passes`` is for the rows that a set sends through a model that runs several times.
    """

    datasets: DatasetLimits
    bodies: BodyLimits
    max_row_passes: int = 20_000_000


@dataclass(frozen=True)
class Workspace:
    """Database, artifact store, child processes and limits of one process of the service.

    ``shards`` is where the rows of jobs are run, and ``keep_inputs`` which samples of a calibration
    set are kept when its job has succeeded.

    ``doorbell`` is released for every calibration queued here, so that an idle worker of this
    process starts at once; work queued elsewhere is found by polling.
    """

    database: Database
    artifacts: ArtifactStore
    runners: RunnerPool
    spool: SpoolFolder
    shards: ShardRunner
    keep_inputs: KeepInputs
    lease_seconds: float
    limits: Limits
    served: ServedCache = field(default_factory=ServedCache)
    labelled: LabelledCache = field(default_factory=LabelledCache)
    missed: MissedCache = field(default_factory=MissedCache)
    metrics: Metrics = field(default_factory=Metrics)
    doorbell: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))

    def job_queue(self, owner: str, table: type[JobTable]) -> JobQueue:
        """Return the queue of a table's jobs as this owner sees it."""
        return JobQueue(self.database, owner, self.lease_seconds, table)

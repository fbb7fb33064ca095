"""Threads that make, publish, refit, promote and delete small calibrations, as fast as they can.

What belongs to a version tells which: a table, a score or a file of another one would show.
"""

import threading
import uuid
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress

from schema_rows import HEAD_ROWS
from sqlalchemy import select
from stored_rows import InTransactions, attempt, queue_calibration, queue_evaluation

import models
from service.errors import Conflict, NotFound
from service.jobs.queue import ClaimedJob, JobQueue
from service.storage.artifact_rows import NewArtifact
from service.storage.artifact_store import ArtifactStore
from service.storage.calibrations import CalibrationRepository
from service.storage.database import Database
from service.storage.tenants import ALL_TENANTS

NAMES = ("left", "right")
N_SHARDS, N_RECORDS, N_BINS = 3, 2, 4
NO_FOLDS = dict.fromkeys(("mean", "std", "folds", "pooled"))


def content(name: str, version: int, part: object) -> bytes:
    return f"{name}@{version} {part} ".encode() * 100


class UnderWay:
    """One thread's work: each turn makes a version of its name and deletes older ones."""

    def __init__(
        self, database: Database, artifacts: ArtifactStore, name: str, turned: threading.Semaphore
    ) -> None:
        self._database, self._artifacts, self._name = database, artifacts, name
        self._calibrations = InTransactions(database, CalibrationRepository)
        self._owner = f"{name} {uuid.uuid4()}"
        self.turns = 0
        self.turned = turned

    def turn(self) -> None:
        self._queue()
        for table in (models.Calibration, models.Evaluation):
            queue = JobQueue(self._database, self._owner, 60.0, table)
            while (job := queue.claim()) is not None:
                self._publish(queue, job)
        newest = self._succeeded()
        # Empty while the other thread still publishes the first version, which it has claimed.
        if newest:
            if self.turns % 3 == 0:
                copy = models.Calibration(id=uuid.uuid4(), config={}, warnings=[])
                attempt(self._calibrations.add_refit, newest[-1].id, copy)
            attempt(self._calibrations.promote, newest[-1].id)
        for row in newest[:-2]:
            with suppress(NotFound, Conflict):
                self._artifacts.delete(self._calibrations.delete(row.id))
        self.turns += 1
        self.turned.release()

    def _queue(self) -> None:
        made = uuid.uuid4()
        # Which version it becomes is known only then: its shards say whose they are.
        shards = [
            self._put(made, f"sets/calibration-{i}", "calibration", i, str(made).encode())
            for i in range(N_SHARDS)
        ]
        queue_calibration(self._database, self._name, artifacts=shards, calibration_id=made)

    def _publish(self, queue: JobQueue, job: ClaimedJob) -> None:
        row = self._calibrations.get(job.calibration_id)
        given = [(a.key, a.role) for a in row.artifacts]
        records_given = any(role == "records" for _, role in given)
        if job.evaluation_id is not None:
            queue.publish(job, rows=[], artifacts=[], result={"version": row.version})
            return
        records = [
            self._put(row.id, f"records-{i}", "records", i, content(row.name, row.version, i))
            for i in range(0 if records_given else N_RECORDS)
        ]
        queue.publish(job, rows=_results(row), artifacts=records, accuracy={"1": row.version / 1e6})
        self._artifacts.delete([key for key, role in given if role == "calibration"])
        if row.version % 2:
            attempt(queue_evaluation, self._database, row)

    def _succeeded(self) -> list[models.Calibration]:
        query = select(models.Calibration).where(
            models.Calibration.name == self._name, models.Calibration.status == "succeeded"
        )
        with self._database.reading(ALL_TENANTS) as session:
            return list(session.scalars(query.order_by(models.Calibration.version)))

    def _put(
        self, made: uuid.UUID, name: str, role: models.ArtifactRole, position: int, of: bytes
    ) -> NewArtifact:
        key = f"calibrations/{made}/{name}"
        stored = self._artifacts.put_bytes(key, of)
        return NewArtifact(role, position, name, key, stored.sha256, stored.size)


def _results(row: models.Calibration) -> list[models.Base]:
    of = {"tenant_id": row.tenant_id, "calibration_id": row.id}
    table, found, score = (dict(HEAD_ROWS[name][0]) for name in ("bin_table", "bin", "score"))
    del table["id"], found["bin_table_id"]
    found |= {"tenant_id": row.tenant_id, "count": row.version, "hits": 0}
    bins = [models.Bin(**found | {"index": i}) for i in range(N_BINS)]
    table |= of | {"n_samples": row.version, "bins": bins}
    score |= of | {"phase": "evaluation", "value": row.version, **NO_FOLDS}
    return [models.BinTable(**table), models.Score(**score)]


@contextmanager
def under_way(database: Database, artifacts: ArtifactStore):
    """Run the threads until the block ends; raise what any of them raised.

    Yields a semaphore that each turn releases.
    """
    turned, ending = threading.Semaphore(0), threading.Event()

    def run(work: UnderWay) -> None:
        while not ending.is_set():
            work.turn()

    works = [UnderWay(database, artifacts, name, turned) for name in NAMES]
    with ThreadPoolExecutor(len(works)) as pool:
        threads = [pool.submit(run, work) for work in works]
        try:
            yield turned
        finally:
            ending.set()
    for thread in threads:
        thread.result()

"""Rows in a database: calibrations, jobs, and threads that write them."""

import hashlib
import threading
import uuid
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any, TypeVar

import sqlalchemy as sa
from databases import listening, opened_database
from runner_children import wait_until
from schema_rows import HEAD_ROWS, fill, in_order
from sqlalchemy import URL, Engine, text
from sqlalchemy.orm import Session

import models
from service.backups.back_up import back_up
from service.backups.format import Manifest
from service.errors import Conflict, NotFound
from service.jobs.queue import ClaimedJob, JobQueue, LeaseLost
from service.storage.artifact_rows import NewArtifact
from service.storage.artifact_store import ArtifactStore, open_artifact_store
from service.storage.calibrations import CalibrationRepository
from service.storage.database import Database
from service.storage.evaluations import EvaluationRepository
from service.storage.tenants import ALL_TENANTS, default_tenant_id

Job = models.Calibration | models.Evaluation


class InTransactions:
    """A repository whose calls are a transaction each."""

    def __init__(
        self,
        database: Database,
        repository: type[CalibrationRepository | EvaluationRepository],
        tenant_id: uuid.UUID | None = None,
    ) -> None:
        self._database, self._repository = database, repository
        self._tenant_id = tenant_id or tenant_of(database)

    def __getattr__(self, name: str) -> Callable[..., Any]:
        def call(*arguments: Any, **options: Any) -> Any:
            with self._database.session(ALL_TENANTS) as session:
                repository = self._repository(session, self._tenant_id)
                return getattr(repository, name)(*arguments, **options)

        return call


def tenant_of(database: Database) -> uuid.UUID:
    with database.reading(ALL_TENANTS) as session:
        return default_tenant_id(session)


def add_tenant(database: Database, name: str) -> uuid.UUID:
    tenant_id = uuid.uuid4()
    with database.session(ALL_TENANTS) as session:
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
    with database.session(ALL_TENANTS) as session:
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
    with database.session(ALL_TENANTS) as session:
        return EvaluationRepository(session, calibration.tenant_id).add(
            models.Evaluation(
                id=evaluation_id or uuid.uuid4(),
                calibration_id=calibration.id,
                name=name,
                labelled=True,
                data={"samples": 50},
            ),
            artifacts,
        )


def queue_of(
    database: Database,
    owner: str = "owner",
    lease_seconds: float = 60.0,
    table: type[Job] = models.Calibration,
) -> JobQueue:
    return JobQueue(database, owner, lease_seconds, table)


evaluation_queue_of = partial(queue_of, table=models.Evaluation)


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
    database: Database, name: str = "digits", *, status: models.JobStatus = "succeeded", **row: Any
) -> models.Calibration:
    queued = queue_calibration(database, name, **row)
    finish(database, queued, status)
    return stored(database, queued.id)


def finished_evaluation(
    database: Database, *row: Any, status: models.JobStatus = "succeeded", **options: Any
) -> models.Evaluation:
    queued = queue_evaluation(database, *row, **options)
    _finish(evaluation_queue_of(database), queued.id, status, {"result": {"shifted": False}})
    return stored(database, queued.id, models.Evaluation)


def stored(database: Database, row_id: uuid.UUID, table: type[Job] = models.Calibration) -> Any:
    """Return a row as it is now."""
    with database.reading(ALL_TENANTS) as session:
        return session.get_one(table, row_id)


def claimed(queue: JobQueue) -> ClaimedJob:
    job = queue.claim()
    assert job is not None
    return job


class Jobs:
    table: type[Job]

    def __init__(self, database: Database) -> None:
        self.database = database

    def queue_of(self, owner: str = "owner", lease_seconds: float = 60.0) -> JobQueue:
        return queue_of(self.database, owner, lease_seconds, self.table)

    def stored(self, row_id: uuid.UUID) -> Any:
        return stored(self.database, row_id, self.table)

    def calibration_id(self, row: Job) -> uuid.UUID:
        return row.calibration_id if isinstance(row, models.Evaluation) else row.id

    def first_claim(self, row: Job) -> ClaimedJob:
        evaluation_id = row.id if isinstance(row, models.Evaluation) else None
        return ClaimedJob(self.calibration_id(row), row.tenant_id, 1, evaluation_id=evaluation_id)


class CalibrationJobs(Jobs):
    kind = "calibration"
    table = models.Calibration
    result = {"accuracy": {"1": 0.9}}  # noqa: RUF012  (never written to)

    def put(self, *, tenant_id: uuid.UUID | None = None) -> models.Calibration:
        return queue_calibration(self.database, tenant_id=tenant_id)

    def request_cancel(self, row: models.Calibration) -> None:
        InTransactions(self.database, CalibrationRepository).request_cancel(row.id)


class EvaluationJobs(Jobs):
    kind = "evaluation"
    table = models.Evaluation
    result = {"result": {"shifted": True}}  # noqa: RUF012  (never written to)

    @cached_property
    def calibration(self) -> models.Calibration:
        return finished_calibration(self.database)

    def put(self, *, tenant_id: uuid.UUID | None = None) -> models.Evaluation:
        calibration = self.calibration
        if tenant_id is not None:
            calibration = finished_calibration(self.database, tenant_id=tenant_id)
        return queue_evaluation(self.database, calibration, f"set {uuid.uuid4()}")

    def request_cancel(self, row: models.Evaluation) -> None:
        repository = InTransactions(self.database, EvaluationRepository)
        repository.request_cancel(row.calibration_id, row.name)


WAITING = """
    SELECT EXISTS (
        SELECT FROM pg_stat_activity
        WHERE wait_event_type = 'Lock' AND datname = current_database()
    )
"""
Result = TypeVar("Result")


def at_once(works: Sequence[Callable[[], object]]) -> list[object]:
    """Run each in a thread of its own, all from the same moment; raise what any of them raised."""
    barrier = threading.Barrier(len(works))

    def start(work: Callable[[], object]) -> object:
        barrier.wait(60)
        return work()

    with ThreadPoolExecutor(len(works)) as pool:
        return list(pool.map(start, works))


def attempt(work: Callable[..., Result], *arguments: object) -> Result | Exception:
    """Return what a work that races returns, or how it was refused."""
    try:
        return work(*arguments)
    except (Conflict, NotFound, LeaseLost) as refused:
        return refused


def held_up(
    transaction: AbstractContextManager[Session],
    first: Callable[[Session], object],
    second: Callable[[], Result],
    then: Callable[[Session], object] = lambda _: None,
) -> Result:
    """Run ``second`` in a thread that must wait for what ``first`` locks; return its result.

    ``then`` belongs to the transaction of ``first`` too, and runs while the other one waits.
    """
    with ThreadPoolExecutor(1) as pool:
        with transaction as session:
            first(session)
            future = submit_held_up(pool, second, session.get_bind().engine.url)
            then(session)
        return future.result()


def submit_held_up(
    pool: ThreadPoolExecutor, work: Callable[[], Result], url: URL
) -> Future[Result]:
    """Begin a work that must wait for a transaction which somebody holds; return once it waits."""
    with waiting_for(url) as somebody_waits:
        future = pool.submit(work)
        assert wait_until(lambda: future.done() or somebody_waits())
    assert not future.done(), "nothing held it up"
    return future


@contextmanager
def waiting_for(url: URL) -> Iterator[Callable[[], bool]]:
    """Yield what tells whether a transaction of this database waits for another."""
    if url.get_backend_name() == "postgresql":
        engine = sa.create_engine(url, poolclass=sa.NullPool, isolation_level="AUTOCOMMIT")
        with engine.connect() as connection:
            yield lambda: bool(connection.scalar(text(WAITING)))
        return
    begun = threading.Event()

    def begins(connection: sa.Connection, _cursor: object, statement: str, *_: object) -> None:
        # SQLite has one writer, and that is somebody else.
        if statement == "BEGIN IMMEDIATE" and connection.engine.url.database == url.database:
            begun.set()

    with listening(Engine, "before_cursor_execute", begins):
        yield begun.is_set


@dataclass(frozen=True)
class StoredPlace:
    """A database and the place of its artifacts."""

    url: str
    folder: Path

    @property
    def artifacts(self) -> ArtifactStore:
        return open_artifact_store(str(self.folder))

    def opened(self) -> AbstractContextManager[Database]:
        return opened_database(self.url)

    def rows(self) -> dict[str, list[dict[str, object]]]:
        with self.opened() as database:
            return rows_of(database)

    def back_up(self, target: Path, **options: Any) -> Manifest:
        with self.opened() as database:
            return back_up(database, self.artifacts, target, **options)


def fill_with_files(place: StoredPlace) -> None:
    """Put rows into each table of a database that is up to date, and their files into the store.

    Two keys have the same content, and two rows the same key.
    """
    fill(place.url)
    with place.opened() as database, database.session(ALL_TENANTS) as session:
        for row in HEAD_ROWS["artifact"]:
            content = b"the same" if row["position"] == 1 else row["key"].encode() * 50
            stored = place.artifacts.put_bytes(row["key"], content)
            changed = sa.update(models.Artifact).where(models.Artifact.key == row["key"])
            session.execute(changed.values(sha256=stored.sha256, size=stored.size))


def rows_of(database: Database) -> dict[str, list[dict[str, object]]]:
    """Return all rows as the models have them: alike on every database."""
    with database.reading(ALL_TENANTS) as session:
        return {
            table.name: in_order(
                [dict(row) for row in session.execute(sa.select(table)).mappings()]
            )
            for table in models.Base.metadata.sorted_tables
        }


def assert_files_are_those_of_the_rows(place: StoredPlace) -> None:
    """Each row has its file, unharmed, and each file its row."""
    found = place.rows()["artifact"]
    assert set(place.artifacts.keys()) == {row["key"] for row in found}
    for row in found:
        content = place.artifacts.get_bytes(row["key"], row["sha256"])
        assert len(content) == row["size"]
        assert hashlib.sha256(content).hexdigest() == row["sha256"]

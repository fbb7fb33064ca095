"""A process that is killed leaves no partial results."""

import subprocess
import sys
import textwrap
import uuid
from pathlib import Path

import pytest
import storage_rows
from databases import DIALECTS
from sqlalchemy import func, select
from storage_rows import claimed, new_artifact, queue_calibration, queue_of, stored, tenant_of

import models
from service.errors import NotFound
from service.storage.calibrations import CalibrationRepository


@pytest.fixture(params=DIALECTS)
def dialect(request: pytest.FixtureRequest) -> str:
    """Return the name of each supported database."""
    return request.param


def run(code, *arguments):
    """Run the code in a process of its own, which ends by ``os._exit`` or SIGKILL."""
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code), *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def count(database, table):
    with database.reading() as session:
        return session.scalar(select(func.count()).select_from(table))


def test_a_death_while_publishing_leaves_the_job_to_the_next_owner(database, database_url):
    row = queue_calibration(database)
    died = run(
        """
        import os, sys, uuid
        from sqlalchemy import event
        import models
        from service.storage.database import open_database
        from service.jobs.queue import JobQueue

        database = open_database(sys.argv[1])
        queue = JobQueue(database, "doomed", lease_seconds=-1)
        job = queue.claim()
        event.listen(database.engine, "commit", lambda connection: os._exit(9))
        names = {"tenant_id": job.tenant_id, "calibration_id": job.calibration_id}
        scores = [
            models.Score(**names, k=1, subject_kind="measure", subject="margin",
                         phase="evaluation", name=str(i), value=0.5)
            for i in range(500)
        ]
        queue.publish(job, rows=scores, artifacts=[], accuracy={"1": 1.0})
        """,
        database_url,
    )
    assert died.returncode == 9, died.stderr
    assert stored(database, row.id).status == "running"
    assert count(database, models.Score) == 0
    heir = queue_of(database, "heir")
    job = claimed(heir)
    assert job.attempt == 2
    heir.publish(job, rows=[], artifacts=[], accuracy={"1": 0.5})
    assert stored(database, row.id).accuracy == {"1": 0.5}


def test_a_death_while_creating_leaves_no_row_and_costs_no_version(database, database_url):
    died = run(
        """
        import os, signal, sys, uuid
        sys.path.insert(0, sys.argv[2])
        import models
        from storage_rows import new_artifact
        from service.storage.calibrations import CalibrationRepository
        from service.storage.database import open_database
        from service.storage.tenants import default_tenant_id

        with open_database(sys.argv[1]).session() as session:
            made = uuid.uuid4()
            CalibrationRepository(session, default_tenant_id(session)).add(
                models.Calibration(
                    id=made, name="digits", config={}, data={}, versions={}, warnings=[]
                ),
                [new_artifact(made)],
            )
            os.kill(os.getpid(), signal.SIGKILL)
        """,
        database_url,
        Path(storage_rows.__file__).parent,
    )
    assert died.returncode == -9, died.stderr
    assert count(database, models.Calibration) == 0
    assert count(database, models.Artifact) == 0
    assert queue_calibration(database).version == 1


def test_a_death_while_deleting_keeps_the_calibration_whole(database, database_url):
    made = uuid.uuid4()
    row = queue_calibration(database, artifacts=[new_artifact(made)], calibration_id=made)
    queue = queue_of(database)
    queue.publish(claimed(queue), rows=[], artifacts=[], keep_sets=True, accuracy={"1": 0.5})
    died = run(
        """
        import os, sys, uuid
        from service.storage.calibrations import CalibrationRepository
        from service.storage.database import open_database
        from service.storage.tenants import default_tenant_id

        with open_database(sys.argv[1]).session() as session:
            repository = CalibrationRepository(session, default_tenant_id(session))
            repository.delete(uuid.UUID(sys.argv[2]))
            os._exit(9)
        """,
        database_url,
        row.id,
    )
    assert died.returncode == 9, died.stderr
    with database.session() as session:
        repository = CalibrationRepository(session, tenant_of(database))
        assert len(repository.get(row.id).artifacts) == 1
        assert repository.delete(row.id) == [f"calibrations/{made}/calibration-0"]
        with pytest.raises(NotFound):
            repository.get(row.id)

"""A process that is killed leaves no partial results."""

import os

import pytest
from databases import DIALECTS
from howsure_command import FORKS
from sqlalchemy import event, func, select
from stored_rows import claimed, queue_calibration, queue_of, stored

import models
from service.storage.database import open_database


@pytest.fixture(params=DIALECTS)
def dialect(request: pytest.FixtureRequest) -> str:
    """Return the name of each supported database."""
    return request.param


def die_while_publishing(url):
    """Publish many scores, and end when they are to be committed."""
    database = open_database(url)
    queue = queue_of(database, "doomed", lease_seconds=-1)
    job = claimed(queue)
    event.listen(database.engine, "commit", lambda _connection: os._exit(9))
    of = {"tenant_id": job.tenant_id, "calibration_id": job.calibration_id, "k": 1}
    of |= {"subject_kind": "measure", "subject": "margin", "phase": "evaluation", "value": 0.5}
    scores = [models.Score(**of, name=str(i)) for i in range(500)]
    queue.publish(job, rows=scores, artifacts=[], accuracy={"1": 1.0})


def test_a_death_while_publishing_leaves_the_job_to_the_next_owner(database, database_url):
    row = queue_calibration(database)
    doomed = FORKS.Process(target=die_while_publishing, args=(database_url,), daemon=True)
    doomed.start()
    doomed.join(60)
    assert doomed.exitcode == 9
    assert stored(database, row.id).status == "running"
    with database.reading() as session:
        assert session.scalar(select(func.count()).select_from(models.Score)) == 0
    heir = queue_of(database, "heir")
    job = claimed(heir)
    assert job.attempt == 2
    heir.publish(job, rows=[], artifacts=[], accuracy={"1": 0.5})
    assert stored(database, row.id).accuracy == {"1": 0.5}

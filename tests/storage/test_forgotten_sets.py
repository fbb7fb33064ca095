"""The rows of a job's sets go in the statement that ends it, and no others do."""

import uuid

import pytest
from storage_jobs import JOB_KINDS
from storage_rows import (
    claimed,
    evaluation_queue_of,
    new_artifact,
    queue_calibration,
    queue_evaluation,
    queue_of,
    stored,
    tenant_of,
)

import models
from service.jobs.queue import MAX_ATTEMPTS, LeaseLost
from service.storage.calibrations import CalibrationRepository
from service.storage.evaluations import EvaluationRepository

EXPIRED = -1.0
GIVEN = [
    ("model", 0),
    ("model_data", 0),
    ("calibration", 0),
    ("calibration", 1),
    ("evaluation", 0),
]
KEPT = [("model", 0), ("model_data", 0)]


def put(database, made=None):
    made = made or uuid.uuid4()
    files = [new_artifact(made, role, position=position) for role, position in GIVEN]
    return queue_calibration(database, artifacts=files, calibration_id=made)


def put_evaluation(database, calibration, name="rotated"):
    made = uuid.uuid4()
    prefix = f"calibrations/{calibration.id}/evaluations/{made}"
    files = [
        new_artifact(made, "evaluation", position=i, key=f"{prefix}/evaluation-{i}")
        for i in range(2)
    ]
    return queue_evaluation(database, calibration, name, artifacts=files, evaluation_id=made)


def named(database, row):
    with database.reading() as session:
        found = CalibrationRepository(session, tenant_of(database)).get(row.id)
    return sorted((file.role, file.position) for file in found.artifacts)


def named_of_evaluation(database, row):
    with database.reading() as session:
        found = EvaluationRepository(session, tenant_of(database)).by_id(row.id)
    return sorted((file.role, file.position) for file in found.artifacts)


def publish(queue, job, row):
    queue.publish(job, rows=[], artifacts=[new_artifact(row.id, "records")], accuracy={"1": 0.9})


ENDS = {
    "succeeded": (publish, [*KEPT, ("records", 0)]),
    "failed": (lambda queue, job, _: queue.fail(job, {"title": "Test"}), KEPT),
    "cancelled": (lambda queue, job, _: queue.cancel(job), KEPT),
}


@pytest.mark.parametrize("end", ENDS)
def test_a_job_that_ends_leaves_no_row_of_its_sets(database, end) -> None:
    other, row = put(database), None
    first = claimed(queue_of(database))
    assert first.id == other.id
    row = put(database)
    queue = queue_of(database)
    write, left = ENDS[end]
    write(queue, claimed(queue), row)
    assert stored(database, row.id).status == end
    assert named(database, row) == left
    assert named(database, other) == sorted(GIVEN)


def test_sets_that_are_to_be_kept_stay(database) -> None:
    row = put(database)
    queue = queue_of(database)
    queue.publish(claimed(queue), rows=[], artifacts=[], keep_sets=True)
    assert named(database, row) == sorted(GIVEN)


def test_a_job_that_is_handed_back_or_lost_keeps_them(database) -> None:
    row = put(database)
    queue = queue_of(database)
    assert queue.release(claimed(queue))
    assert named(database, row) == sorted(GIVEN)
    stale = queue_of(database, "stale", EXPIRED)
    job = claimed(stale)
    claimed(queue)
    with pytest.raises(LeaseLost):
        publish(stale, job, row)
    assert not stale.fail(job, {"title": "Test"})
    assert not stale.cancel(job)
    assert named(database, row) == sorted(GIVEN)


def test_one_that_died_too_often_leaves_none(database) -> None:
    row = put(database)
    for _ in range(MAX_ATTEMPTS):
        claimed(queue_of(database, lease_seconds=EXPIRED))
    assert queue_of(database).claim() is None
    assert stored(database, row.id).status == "failed"
    assert named(database, row) == KEPT


@pytest.mark.parametrize("kind", JOB_KINDS, ids=lambda kind: kind.kind)
def test_one_that_is_cancelled_while_it_waits_leaves_none(database, kind) -> None:
    jobs = kind(database)
    if kind.kind == "calibration":
        row = put(database)
        jobs.request_cancel(row)
        assert named(database, row) == KEPT
    else:
        row = put_evaluation(database, jobs.calibration)
        jobs.request_cancel(row)
        assert named_of_evaluation(database, row) == []


def test_an_evaluation_that_ends_leaves_the_sets_of_others(database) -> None:
    calibration = put(database)
    queue = queue_of(database)
    queue.publish(claimed(queue), rows=[], artifacts=[], keep_sets=True)
    row, other = (put_evaluation(database, calibration, name) for name in ("a", "b"))
    evaluations = evaluation_queue_of(database)
    job = claimed(evaluations)
    assert job.evaluation_id == row.id
    records = new_artifact(row.id, "evaluation_records")
    evaluations.publish(job, rows=[], artifacts=[records], result={})
    assert named_of_evaluation(database, row) == [("evaluation_records", 0)]
    assert named_of_evaluation(database, other) == [("evaluation", 0), ("evaluation", 1)]
    assert named(database, calibration) == sorted(GIVEN)


def test_a_refit_that_ends_leaves_its_source_and_itself_what_was_kept(database) -> None:
    """Whoever of the two is deleted last has all files to remove."""
    source = put(database)
    queue = queue_of(database)
    queue.publish(claimed(queue), rows=[], artifacts=[], keep_sets=True)
    for end in ("publish", "cancel"):
        with database.session() as session:
            row = CalibrationRepository(session, source.tenant_id).add_refit(
                source.id, models.Calibration(id=uuid.uuid4(), config={}, warnings=[])
            )
        if end == "publish":
            queue.publish(claimed(queue), rows=[], artifacts=[])
        else:
            assert queue.cancel(claimed(queue))
        assert named(database, row) == sorted(GIVEN)
    assert named(database, source) == sorted(GIVEN)

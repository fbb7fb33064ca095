"""The rows of a job's sets go in the statement that ends it, and no others do."""

import uuid
from functools import partial

from stored_rows import (
    claimed,
    evaluation_queue_of,
    finish,
    new_artifact,
    queue_calibration,
    queue_evaluation,
    queue_of,
    stored,
)

from service.jobs.queue import MAX_ATTEMPTS

EXPIRED = -1.0
GIVEN = [("calibration", 0), ("calibration", 1), ("evaluation", 0), ("model", 0), ("model_data", 0)]
MODEL, RECORDS = GIVEN[3:], ("records", 0)


def put(database):
    made = uuid.uuid4()
    files = [new_artifact(made, role, position=position) for role, position in GIVEN]
    return queue_calibration(database, artifacts=files, calibration_id=made)


def places(row):
    return sorted((file.role, file.position) for file in row.artifacts)


def publish_next(database, row, **options):
    records = [new_artifact(row.id, "records")]
    queue = queue_of(database)
    queue.publish(claimed(queue), rows=[], artifacts=records, accuracy={"1": 0.9}, **options)


def die_too_often(database, _):
    for _ in range(MAX_ATTEMPTS):
        claimed(queue_of(database, lease_seconds=EXPIRED))
    assert queue_of(database).claim() is None


# How a job ends, its status then, and which rows are left.
ENDS = [
    (publish_next, "succeeded", [*MODEL, RECORDS]),
    (partial(publish_next, keep_sets=True), "succeeded", [*GIVEN, RECORDS]),
    (partial(finish, status="failed"), "failed", MODEL),
    (die_too_often, "failed", MODEL),
    (partial(finish, status="cancelled"), "cancelled", MODEL),
]


def test_a_job_that_ends_leaves_no_row_of_its_sets_unless_they_are_kept(database, calibrations):
    other, queue = put(database), queue_of(database)
    assert queue.release(claimed(queue))
    claimed(queue)
    for end, status, left in ENDS:
        row = put(database)
        end(database, row)
        assert stored(database, row.id).status == status
        assert places(calibrations.get(row.id)) == left, end
        assert places(calibrations.get(other.id)) == GIVEN, end
    row = put(database)
    calibrations.request_cancel(row.id)  # while it waits
    assert places(calibrations.get(row.id)) == MODEL


def test_an_ended_evaluation_leaves_the_sets_of_others(database, calibrations, evaluations) -> None:
    calibration = put(database)
    publish_next(database, calibration, keep_sets=True)
    rows = []
    for name in ("a", "b", "c"):
        made = uuid.uuid4()
        folder = f"calibrations/{calibration.id}/evaluations/{made}"
        files = [new_artifact(made, "evaluation", position=i, key=f"{folder}/{i}") for i in (0, 1)]
        row = queue_evaluation(database, calibration, name, artifacts=files, evaluation_id=made)
        rows.append(row)
    queue = evaluation_queue_of(database)
    records = new_artifact(rows[0].id, "evaluation_records")
    queue.publish(claimed(queue), rows=[], artifacts=[records], result={})
    evaluations.request_cancel(calibration.id, "b")
    left = [places(evaluations.by_id(row.id)) for row in rows]
    assert left == [[("evaluation_records", 0)], [], [("evaluation", 0), ("evaluation", 1)]]
    assert places(calibrations.get(calibration.id)) == [*GIVEN, RECORDS]

import uuid
from dataclasses import replace
from functools import partial

import pytest
from sqlalchemy import select
from stored_rows import (
    at_once,
    attempt,
    claimed,
    evaluation_queue_of,
    finished_calibration,
    finished_evaluation,
    held_up,
    new_artifact,
    queue_calibration,
    queue_evaluation,
    queue_of,
)

import models
from service.errors import Conflict, InvalidInput, NotFound
from service.storage.tenants import ALL_TENANTS


@pytest.fixture
def calibration(database):
    return finished_calibration(database)


def names(evaluations, calibration):
    return [row.name for row in evaluations.of_calibration(calibration.id)]


def file_of(calibration, role="evaluation"):
    """Return a file of an evaluation of this calibration."""
    key = f"calibrations/{calibration.id}/evaluations/{uuid.uuid4()}/{role}"
    return new_artifact(calibration.id, role, key=key)


def test_a_name_is_given_once_in_a_calibration_also_at_once(database, calibration, evaluations):
    want = partial(attempt, queue_evaluation, database, calibration)
    results = at_once([want] * 6)
    assert sum(isinstance(result, Conflict) for result in results) == 5
    other = finished_calibration(database)
    queue_evaluation(database, other)
    queue_evaluation(database, calibration, "Rotated")
    assert names(evaluations, calibration) == ["rotated", "Rotated"]
    assert names(evaluations, other) == ["rotated"]


def test_a_name_that_cannot_be_shown_is_refused_and_never_found(database, calibration, evaluations):
    uses = (evaluations.get, evaluations.delete, evaluations.request_cancel)
    with pytest.raises(NotFound):
        evaluations.by_id(uuid.uuid4())
    for name in ("", "x" * 101, "a\0b", "a\ud800", "a\nb"):
        with pytest.raises(InvalidInput) as refused:
            queue_evaluation(database, calibration, name)
        assert [one.location for one in refused.value.violations] == ["name"]
        for use in uses:
            with pytest.raises(NotFound) as missing:
                use(calibration.id, name)
            assert missing.value.message.isascii()


def test_deleting_releases_the_files_and_frees_the_name(database, calibrations, evaluations):
    own, shared = new_artifact(uuid.uuid4()), new_artifact(uuid.uuid4())
    calibration = finished_calibration(database, artifacts=[own])
    files = [file_of(calibration) for _ in range(2)]
    artifacts = [files[0], replace(shared, position=1)]
    finished_evaluation(database, calibration, artifacts=artifacts)
    finished_evaluation(database, calibration, "other", artifacts=files[1:])
    evaluations.delete(calibration.id, "rotated")
    assert released(database) == sorted([files[0].key, shared.key])
    assert names(evaluations, calibration) == ["other"]
    finished_evaluation(database, calibration)
    assert names(evaluations, calibration) == ["other", "rotated"]
    # A calibration goes with its evaluations.
    calibrations.delete(calibration.id)
    assert released(database) == sorted([files[0].key, shared.key, own.key, files[1].key])
    assert names(evaluations, calibration) == []


def released(database):
    with database.reading(ALL_TENANTS) as session:
        return sorted(session.scalars(select(models.ReleasedFile.key)))


def test_what_is_not_finished_cannot_be_deleted(database, calibration, calibrations, evaluations):
    """Nor a calibration with an evaluation that is not; the refusal names which to cancel."""

    def assert_refused(delete, *arguments, naming):
        with pytest.raises(Conflict, match=naming):
            delete(*arguments)

    unfinished = queue_calibration(database)
    assert_refused(calibrations.delete, unfinished.id, naming="queued")
    claimed(queue_of(database))
    assert_refused(calibrations.delete, unfinished.id, naming="running")
    for name in ("b", "a"):
        queue_evaluation(database, calibration, name)
    assert_refused(evaluations.delete, calibration.id, "b", naming="queued")
    assert_refused(calibrations.delete, calibration.id, naming="queued.*'a'")
    evaluations.request_cancel(calibration.id, "a")
    claimed(evaluation_queue_of(database))
    assert_refused(evaluations.delete, calibration.id, "b", naming="running")
    assert_refused(calibrations.delete, calibration.id, naming="running.*'b'")


def test_who_deletes_waits_for_a_result_and_does_not_hold_it_up(database, calibration, evaluations):
    """The one who publishes has the evaluation, and needs its calibration to refer to it."""
    file = file_of(calibration)
    row = queue_evaluation(database, calibration, artifacts=[file])
    queue = evaluation_queue_of(database)
    job = claimed(queue)
    records = file_of(calibration, "evaluation_records")

    def publish(session):
        session.add(records.row(row.tenant_id, calibration.id, row.id))
        queue._finish(session, job, keep_sets=True, status="succeeded", result={})

    hold = partial(queue._held, job=job)
    deletion = partial(evaluations.delete, calibration.id, "rotated")
    held_up(database.session(ALL_TENANTS), hold, deletion, then=publish)
    assert released(database) == sorted([file.key, records.key])

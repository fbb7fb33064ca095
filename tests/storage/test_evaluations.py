import uuid
from dataclasses import replace
from functools import partial

import pytest
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
    stored_evaluation,
)

from service.errors import Conflict, InvalidInput, NotFound
from service.storage.tenants import ALL_TENANTS

NO_NAMES = ["", "x" * 101, "a\0b", "a\ud800", "a\nb"]


@pytest.fixture
def calibration(database):
    return finished_calibration(database)


def names(evaluations, calibration):
    return [row.name for row in evaluations.of_calibration(calibration.id)]


def file_of(calibration, role="evaluation"):
    """Return a file of an evaluation of this calibration."""
    key = f"calibrations/{calibration.id}/evaluations/{uuid.uuid4()}/{role}"
    return new_artifact(calibration.id, role, key=key)


def test_what_is_created_is_found_by_name_and_by_id(
    database, calibration, calibrations, evaluations
):
    file = file_of(calibration)
    created = queue_evaluation(database, calibration, artifacts=[file])
    assert (created.status, created.attempt, created.labelled) == ("queued", 0, True)
    assert created.created_at.utcoffset().total_seconds() == 0
    found = evaluations.get(calibration.id, "rotated")
    assert (found.id, found.calibration_id) == (created.id, calibration.id)
    assert (found.data, found.result) == ({"samples": 50}, None)
    assert [(one.key, one.evaluation_id) for one in found.artifacts] == [(file.key, created.id)]
    by_id = evaluations.by_id(created.id)
    assert (by_id.name, [one.key for one in by_id.artifacts]) == ("rotated", [file.key])
    assert calibrations.get(calibration.id).artifacts == [], "no file of the calibration"


def test_a_name_is_given_once_in_a_calibration(database, calibration, evaluations):
    queue_evaluation(database, calibration)
    with pytest.raises(Conflict, match="digits@1 already has an evaluation 'rotated'"):
        queue_evaluation(database, calibration)
    other = finished_calibration(database)
    queue_evaluation(database, other)
    queue_evaluation(database, calibration, "Rotated")
    assert names(evaluations, calibration) == ["rotated", "Rotated"]
    assert names(evaluations, other) == ["rotated"]


def test_of_those_who_want_a_name_at_once_one_gets_it(database, calibration, evaluations):
    want = partial(attempt, queue_evaluation, database, calibration)
    found = at_once([want] * 6)
    assert sum(isinstance(one, Conflict) for one in found) == 5
    assert names(evaluations, calibration) == ["rotated"]


def test_a_name_that_cannot_be_shown_is_refused_and_never_found(database, calibration, evaluations):
    for name in NO_NAMES:
        with pytest.raises(InvalidInput) as caught:
            queue_evaluation(database, calibration, name)
        assert [found.location for found in caught.value.violations] == ["name"]
        for use in (evaluations.get, evaluations.delete, evaluations.request_cancel):
            with pytest.raises(NotFound) as missing:
                use(calibration.id, name)
            assert missing.value.message.isascii()


def test_what_is_not_there_is_not_found(database, calibration, evaluations, calibrations):
    for use in (evaluations.get, evaluations.delete, evaluations.request_cancel):
        with pytest.raises(NotFound, match="there is no evaluation 'rotated'"):
            use(calibration.id, "rotated")
    with pytest.raises(NotFound):
        evaluations.by_id(uuid.uuid4())
    calibrations.delete(calibration.id)
    for use in (
        partial(queue_evaluation, database, calibration),
        partial(evaluations.delete, calibration.id, "rotated"),
    ):
        with pytest.raises(NotFound, match="there is no calibration"):
            use()


def test_deleting_returns_the_keys_and_frees_the_name(
    database, calibration, calibrations, evaluations
):
    file = file_of(calibration)
    shared = new_artifact(uuid.uuid4())
    sharer = finished_calibration(database, artifacts=[shared])
    finished_evaluation(database, calibration, artifacts=[file, replace(shared, position=1)])
    finished_evaluation(database, calibration, "other")
    assert evaluations.delete(calibration.id, "rotated") == [file.key]
    assert names(evaluations, calibration) == ["other"]
    queue_evaluation(database, calibration)
    assert names(evaluations, calibration) == ["other", "rotated"]
    assert calibrations.delete(sharer.id) == [shared.key]


def test_what_is_not_finished_cannot_be_deleted(database, calibration, calibrations, evaluations):
    with pytest.raises(Conflict, match="digits@2 is queued: cancel it first"):
        calibrations.delete(queue_calibration(database).id)
    claimed(queue_of(database))
    with pytest.raises(Conflict, match="running"):
        calibrations.delete(calibrations.find("digits@2").id)
    for name in ("b", "a"):
        queue_evaluation(database, calibration, name)
    with pytest.raises(Conflict, match="'b' is queued: cancel it first"):
        evaluations.delete(calibration.id, "b")
    refused = "digits@1 has an evaluation that is queued: cancel 'a' first"
    with pytest.raises(Conflict, match=refused):
        calibrations.delete(calibration.id)
    evaluations.request_cancel(calibration.id, "a")
    claimed(evaluation_queue_of(database))
    with pytest.raises(Conflict, match="running"):
        evaluations.delete(calibration.id, "b")
    with pytest.raises(Conflict, match="an evaluation that is running: cancel 'b' first"):
        calibrations.delete(calibration.id)


def test_a_calibration_goes_with_its_evaluations_and_their_files(
    database, calibrations, evaluations
):
    own = new_artifact(uuid.uuid4())
    calibration = finished_calibration(database, artifacts=[own])
    files = [file_of(calibration) for _ in range(2)]
    for file in files:
        finished_evaluation(database, calibration, file.key[-40:], artifacts=[file])
    keys = calibrations.delete(calibration.id)
    assert keys == sorted(file.key for file in (own, *files))
    assert names(evaluations, calibration) == []


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

    keys = held_up(
        database.session(ALL_TENANTS),
        lambda session: queue._held(session, job),
        partial(evaluations.delete, calibration.id, "rotated"),
        then=publish,
    )
    assert keys == sorted([file.key, records.key])


def test_a_result_that_races_with_deletions_is_whole_or_was_in_time(
    database, calibrations, evaluations
):
    """None of the three waits for another for ever, and no file is left without an answer."""
    for i in range(4):
        calibration = finished_calibration(database, f"race-{i}")
        file, records = file_of(calibration), file_of(calibration, "evaluation_records")
        row = queue_evaluation(database, calibration, artifacts=[file])
        queue = evaluation_queue_of(database)
        publish = partial(
            queue.publish, claimed(queue), rows=[], artifacts=[records], keep_sets=True, result={}
        )
        _, *deleted = at_once(
            [
                publish,
                partial(attempt, evaluations.delete, calibration.id, "rotated"),
                partial(attempt, calibrations.delete, calibration.id),
            ]
        )
        found = [one for one in deleted if isinstance(one, list)]
        if not any(found):
            assert stored_evaluation(database, row.id).status == "succeeded"
        keys = sorted(key for keys in found for key in keys)
        assert keys in ([], sorted([file.key, records.key]))

import uuid
from functools import partial

import pytest
from storage_rows import (
    add_tenant,
    claimed,
    evaluation_queue_of,
    finished_calibration,
    finished_evaluation,
    new_artifact,
    queue_calibration,
    queue_evaluation,
    stored_evaluation,
    tenant_of,
)
from storage_threads import at_once, held_up

from service.errors import Conflict, InvalidInput, NotFound
from service.jobs.queue import LeaseLost
from service.storage.calibrations import CalibrationRepository
from service.storage.evaluations import EvaluationRepository

NO_NAMES = ["", "x" * 101, "a\0b", "a\ud800", "a\nb"]


@pytest.fixture
def calibration(database):
    return finished_calibration(database)


def get(database, calibration, name="rotated", tenant_id=None):
    with database.reading() as session:
        repository = EvaluationRepository(session, tenant_id or tenant_of(database))
        return repository.get(calibration.id, name)


def names(database, calibration, tenant_id=None):
    with database.reading() as session:
        repository = EvaluationRepository(session, tenant_id or tenant_of(database))
        return [row.name for row in repository.of_calibration(calibration.id)]


def delete(database, calibration, name="rotated"):
    with database.session() as session:
        return EvaluationRepository(session, tenant_of(database)).delete(calibration.id, name)


def delete_calibration(database, calibration):
    with database.session() as session:
        return CalibrationRepository(session, tenant_of(database)).delete(calibration.id)


def request_cancel(database, calibration, name="rotated"):
    with database.session() as session:
        repository = EvaluationRepository(session, tenant_of(database))
        return repository.request_cancel(calibration.id, name)


def attempt(work):
    """Return what a work that races returns, or how it was refused."""
    try:
        return work()
    except (Conflict, NotFound, LeaseLost) as refused:
        return refused


def key_of(calibration, evaluation_id, name="set"):
    return f"calibrations/{calibration.id}/evaluations/{evaluation_id}/{name}"


def files_of(calibration):
    evaluation_id = uuid.uuid4()
    key = key_of(calibration, evaluation_id)
    return key, [new_artifact(evaluation_id, "evaluation", key=key)]


def test_what_is_created_is_found_by_name_and_by_id(database, calibration):
    key, files = files_of(calibration)
    created = queue_evaluation(database, calibration, artifacts=files)
    assert (created.status, created.attempt, created.labelled) == ("queued", 0, True)
    assert created.created_at.utcoffset().total_seconds() == 0
    found = get(database, calibration)
    assert (found.id, found.calibration_id) == (created.id, calibration.id)
    assert (found.data, found.result) == ({"samples": 50}, None)
    assert [(file.key, file.evaluation_id) for file in found.artifacts] == [(key, created.id)]
    with database.reading() as session:
        by_id = EvaluationRepository(session, tenant_of(database)).by_id(created.id)
    assert (by_id.name, [file.key for file in by_id.artifacts]) == ("rotated", [key])


def test_the_files_of_a_calibration_do_not_hold_those_of_its_evaluations(database):
    own = new_artifact(uuid.uuid4())
    calibration = finished_calibration(database, artifacts=[own])
    _, files = files_of(calibration)
    queue_evaluation(database, calibration, artifacts=files)
    with database.reading() as session:
        found = CalibrationRepository(session, tenant_of(database)).get(calibration.id)
    assert [file.key for file in found.artifacts] == [own.key]


def test_a_name_is_given_once_in_a_calibration(database, calibration):
    queue_evaluation(database, calibration)
    with pytest.raises(Conflict, match="digits@1 already has an evaluation 'rotated'"):
        queue_evaluation(database, calibration)
    other = finished_calibration(database)
    queue_evaluation(database, other)
    queue_evaluation(database, calibration, "Rotated")
    assert names(database, calibration) == ["rotated", "Rotated"]
    assert names(database, other) == ["rotated"]


def test_of_those_who_want_a_name_at_once_one_gets_it(database, calibration):
    want = partial(attempt, partial(queue_evaluation, database, calibration))
    found = at_once([want] * 6)
    assert sum(isinstance(one, Conflict) for one in found) == 5
    assert names(database, calibration) == ["rotated"]


def test_a_calibration_that_has_not_succeeded_is_not_evaluated(database):
    failed, queued = finished_calibration(database, status="failed"), queue_calibration(database)
    for row, status in ((failed, "failed"), (queued, "queued")):
        with pytest.raises(Conflict, match=f"@{row.version} is not ready: it is {status}"):
            queue_evaluation(database, row)
        assert names(database, row) == []


@pytest.mark.parametrize("name", NO_NAMES)
def test_a_name_that_cannot_be_shown_is_refused_and_never_found(database, calibration, name):
    with pytest.raises(InvalidInput) as caught:
        queue_evaluation(database, calibration, name)
    assert [found.location for found in caught.value.violations] == ["name"]
    for use in (get, delete, request_cancel):
        with pytest.raises(NotFound) as missing:
            use(database, calibration, name)
        assert missing.value.message.isascii()


def test_what_is_not_there_is_not_found(database, calibration):
    for use in (get, delete, request_cancel):
        with pytest.raises(NotFound, match="there is no evaluation 'rotated'"):
            use(database, calibration)
    gone = finished_calibration(database)
    delete_calibration(database, gone)
    with pytest.raises(NotFound, match="there is no calibration"):
        queue_evaluation(database, gone)
    with pytest.raises(NotFound, match="there is no calibration"):
        delete(database, gone)
    with pytest.raises(NotFound), database.reading() as session:
        EvaluationRepository(session, tenant_of(database)).by_id(uuid.uuid4())


def test_another_tenant_finds_nothing_and_adds_nothing(database, calibration):
    row = finished_evaluation(database, calibration)
    other = add_tenant(database, "other")
    with pytest.raises(NotFound):
        get(database, calibration, tenant_id=other)
    assert names(database, calibration, other) == []
    with database.session() as session:
        repository = EvaluationRepository(session, other)
        for use in (repository.delete, repository.request_cancel):
            with pytest.raises(NotFound):
                use(calibration.id, "rotated")
        with pytest.raises(NotFound):
            repository.by_id(row.id)
        with pytest.raises(NotFound):
            repository.create(
                uuid.uuid4(),
                calibration_id=calibration.id,
                name="theirs",
                labelled=False,
                data={},
                artifacts=[],
            )
    assert names(database, calibration) == ["rotated"]


def test_the_evaluations_of_a_calibration_come_as_they_were_made(database, calibration):
    wanted = ["c", "a", "b"]
    for name in wanted:
        finished_evaluation(database, calibration, name)
    other = finished_calibration(database)
    finished_evaluation(database, other, "d")
    assert names(database, calibration) == wanted
    assert get(database, calibration, "a").result == {"shifted": False}


def test_deleting_returns_the_keys_and_frees_the_name(database, calibration):
    key, files = files_of(calibration)
    finished_evaluation(database, calibration, artifacts=files)
    finished_evaluation(database, calibration, "other")
    assert delete(database, calibration) == [key]
    assert names(database, calibration) == ["other"]
    queue_evaluation(database, calibration)
    assert names(database, calibration) == ["other", "rotated"]


def test_what_is_not_finished_cannot_be_deleted(database, calibration):
    queue_evaluation(database, calibration)
    with pytest.raises(Conflict, match="Evaluation 'rotated' is queued: cancel it first"):
        delete(database, calibration)
    claimed(evaluation_queue_of(database))
    with pytest.raises(Conflict, match="running"):
        delete(database, calibration)


def test_a_file_that_another_calibration_refers_to_stays(database, calibration):
    key, files = files_of(calibration)
    finished_evaluation(database, calibration, artifacts=files)
    sharer = finished_calibration(database, artifacts=[new_artifact(uuid.uuid4(), key=key)])
    assert delete(database, calibration) == []
    assert delete_calibration(database, sharer) == [key]


def test_a_calibration_goes_with_its_evaluations_and_their_files(database):
    own = new_artifact(uuid.uuid4())
    calibration = finished_calibration(database, artifacts=[own])
    keys = [own.key]
    for name in ("a", "b"):
        key, files = files_of(calibration)
        finished_evaluation(database, calibration, name, artifacts=files)
        keys.append(key)
    assert delete_calibration(database, calibration) == sorted(keys)
    assert names(database, calibration) == []


def test_a_calibration_that_is_being_evaluated_cannot_be_deleted(database, calibration):
    queue_evaluation(database, calibration, "b")
    queue_evaluation(database, calibration, "a")
    with pytest.raises(
        Conflict, match="digits@1 has an evaluation that is queued: cancel 'a' first"
    ):
        delete_calibration(database, calibration)
    request_cancel(database, calibration, "a")
    claimed(evaluation_queue_of(database))
    with pytest.raises(Conflict, match="an evaluation that is running: cancel 'b' first"):
        delete_calibration(database, calibration)


def creates(calibration, tenant_id):
    def create(session):
        EvaluationRepository(session, tenant_id).create(
            uuid.uuid4(),
            calibration_id=calibration.id,
            name="rotated",
            labelled=True,
            data={},
            artifacts=[],
        )

    return create


def test_a_calibration_waits_for_who_evaluates_it_and_then_stays(database, calibration):
    refused = held_up(
        database.session(),
        creates(calibration, calibration.tenant_id),
        partial(attempt, partial(delete_calibration, database, calibration)),
    )
    assert isinstance(refused, Conflict)
    assert names(database, calibration) == ["rotated"]


def test_who_evaluates_a_calibration_waits_for_its_end_and_finds_none(database, calibration):
    refused = held_up(
        database.session(),
        lambda session: CalibrationRepository(session, calibration.tenant_id).delete(
            calibration.id
        ),
        partial(attempt, partial(queue_evaluation, database, calibration)),
    )
    assert isinstance(refused, NotFound)


def test_who_deletes_waits_for_a_result_and_does_not_hold_it_up(database, calibration):
    """The one who publishes has the evaluation, and needs its calibration to refer to it."""
    key, files = files_of(calibration)
    row = queue_evaluation(database, calibration, artifacts=files)
    queue = evaluation_queue_of(database)
    job = claimed(queue)
    result_key = key_of(calibration, row.id, "records")
    records = new_artifact(row.id, "evaluation_records", key=result_key)

    def publish(session):
        session.add(records.row(row.tenant_id, calibration.id, row.id))
        queue._finish(session, job, keep_sets=True, status="succeeded", result={})

    keys = held_up(
        database.session(),
        lambda session: queue._held(session, job),
        partial(delete, database, calibration),
        then=publish,
    )
    assert keys == sorted([key, result_key])


def test_a_result_that_races_with_deletions_is_whole_or_was_in_time(database):
    """None of the three waits for another for ever, and no file is left without an answer."""
    for i in range(8):
        calibration = finished_calibration(database, f"race-{i}")
        key, files = files_of(calibration)
        row = queue_evaluation(database, calibration, artifacts=files)
        queue = evaluation_queue_of(database)
        job = claimed(queue)
        result_key = key_of(calibration, row.id, "records")
        records = new_artifact(row.id, "evaluation_records", key=result_key)
        _, *deleted = at_once(
            [
                partial(
                    queue.publish, job, rows=[], artifacts=[records], keep_sets=True, result={}
                ),
                partial(attempt, partial(delete, database, calibration)),
                partial(attempt, partial(delete_calibration, database, calibration)),
            ]
        )
        found = [one for one in deleted if isinstance(one, list)]
        if not any(found):
            assert stored_evaluation(database, row.id).status == "succeeded"
        assert sorted(key for keys in found for key in keys) in ([], sorted([key, result_key]))

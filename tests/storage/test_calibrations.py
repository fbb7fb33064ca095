import uuid
from functools import partial

import pytest
from sqlalchemy import func, select
from sqlalchemy.exc import InvalidRequestError, StatementError
from storage_rows import (
    add_tenant,
    claimed,
    finished_calibration,
    new_artifact,
    promote,
    queue_calibration,
    queue_of,
    stored,
    tenant_of,
)
from storage_threads import at_once

import models
from service.errors import Conflict, InvalidInput, NotFound
from service.storage.calibration_queries import CalibrationRef
from service.storage.calibrations import CalibrationRepository
from service.storage.tenants import tenant_named


def find(database, reference, tenant_id=None):
    with database.reading() as session:
        return CalibrationRepository(session, tenant_id or tenant_of(database)).find(reference)


def resolve(database, reference):
    with database.reading() as session:
        return CalibrationRepository(session, tenant_of(database)).resolve(reference)


def delete(database, calibration_id, tenant_id=None):
    with database.session() as session:
        repository = CalibrationRepository(session, tenant_id or tenant_of(database))
        return repository.delete(calibration_id)


def request_cancel(database, calibration_id):
    with database.session() as session:
        return CalibrationRepository(session, tenant_of(database)).request_cancel(calibration_id)


def test_what_is_created_is_found_by_id_and_readable_after_the_session(database):
    created = queue_calibration(database, artifacts=[new_artifact(uuid.uuid4())])
    assert (created.version, created.status, created.attempt) == (1, "queued", 0)
    assert created.created_at.utcoffset().total_seconds() == 0
    found = find(database, str(created.id))
    assert found.config == {"name": "digits", "bins": 10}
    assert found.onnx_model is None
    assert found.accuracy is None
    assert found.created_at == created.created_at
    assert [artifact.label for artifact in found.artifacts] == ["calibration.npz"]


def test_versions_count_per_name_and_are_not_reused_after_delete(database):
    first = finished_calibration(database)
    second = finished_calibration(database)
    other = finished_calibration(database, "other")
    assert (first.version, second.version, other.version) == (1, 2, 1)
    delete(database, second.id)
    delete(database, first.id)
    assert queue_calibration(database).version == 3


def versions(database, name):
    with database.reading() as session:
        rows, _ = CalibrationRepository(session, tenant_of(database)).page(limit=200, name=name)
    return sorted(row.version for row in rows)


def test_threads_that_create_the_same_name_at_once_get_each_version_once(database):
    def create():
        return [queue_calibration(database).version for _ in range(5)]

    returned = [version for found in at_once([create] * 8) for version in found]
    assert sorted(returned) == list(range(1, 41))
    assert versions(database, "digits") == list(range(1, 41))


def test_a_name_means_the_promoted_version_else_the_newest_that_succeeded(database):
    first = finished_calibration(database)
    second = finished_calibration(database)
    finished_calibration(database, status="failed")
    assert find(database, "digits").id == second.id
    promote(database, "digits", 1)
    assert find(database, "digits").id == first.id
    promote(database, "digits", None)
    queue_calibration(database)
    assert find(database, "digits").id == second.id


def test_a_name_without_success_means_its_newest_which_is_not_ready(database):
    finished_calibration(database, status="failed")
    newest = queue_calibration(database)
    assert find(database, "digits").id == newest.id
    with pytest.raises(Conflict, match="digits@2 is not ready: it is queued"):
        resolve(database, "digits")
    with database.reading() as session, pytest.raises(Conflict, match="it is failed"):
        CalibrationRepository(session, tenant_of(database)).find_ready("digits@1")


def test_what_a_reference_means_is_asked_anew_each_time(database):
    first, second = finished_calibration(database), finished_calibration(database)
    other = finished_calibration(database, "other")

    def meant():
        ways = ("digits", "digits@1", "digits@2", str(first.id), second.id.hex, "other")
        return [_resolved(database, way) for way in ways]

    assert meant() == [second.id, first.id, second.id, first.id, second.id, other.id]
    promote(database, "digits", 1)
    assert meant() == [first.id, first.id, second.id, first.id, second.id, other.id]
    delete(database, first.id)
    assert meant() == [second.id, None, second.id, None, second.id, other.id]
    third = finished_calibration(database)
    assert meant() == [third.id, None, second.id, None, second.id, other.id]
    delete(database, other.id)
    assert meant() == [third.id, None, second.id, None, second.id, None]


def _resolved(database, reference):
    """Return the id that `find` and `resolve` agree on; None if neither finds one."""
    try:
        found = find(database, reference)
    except NotFound:
        with pytest.raises(NotFound):
            resolve(database, reference)
        return None
    assert resolve(database, reference) == CalibrationRef(found.id, found.name, found.version)
    return found.id


@pytest.mark.parametrize(
    "reference",
    [
        "nobody",
        "digits@2",
        "digits@0",
        "digits@",
        "digits@one",
        "digits@99999999999999999999",
        "@1",
        "",
        "00000000-0000-0000-0000-000000000000",
        "a\0b",
        "\ud800",
        "x" * 10_000,
        "' OR 1=1 --",
        "%",
    ],
)
def test_a_reference_to_nothing_is_not_found(database, reference):
    queue_calibration(database)
    with pytest.raises(NotFound) as caught:
        find(database, reference)
    assert caught.value.message.isascii()
    assert len(caught.value.message) < 200


def test_another_tenant_finds_nothing_and_counts_its_own_versions(database):
    mine = finished_calibration(database)
    other = add_tenant(database, "other")
    for reference in (str(mine.id), "digits", "digits@1"):
        with pytest.raises(NotFound):
            find(database, reference, other)
    with pytest.raises(NotFound):
        delete(database, mine.id, other)
    with database.session() as session:
        repository = CalibrationRepository(session, other)
        with pytest.raises(NotFound):
            repository.request_cancel(mine.id)
        with pytest.raises(NotFound):
            repository.get(mine.id)
        assert repository.page(limit=10) == ([], None)
    theirs = queue_calibration(database, tenant_id=other)
    assert theirs.version == 1
    assert find(database, "digits").id == mine.id


def test_pages_go_from_new_to_old_and_miss_nothing(database):
    created = [queue_calibration(database, f"name-{i % 2}").id for i in range(6)]
    seen, cursor = [], None
    with database.reading() as session:
        repository = CalibrationRepository(session, tenant_of(database))
        while True:
            rows, cursor = repository.page(limit=3, cursor=cursor)
            seen.append([row.id for row in rows])
            if cursor is None:
                break
    assert [len(page) for page in seen] == [3, 3], "a page that ends with the last row is the last"
    flat = [found for page in seen for found in page]
    assert set(flat) == set(created)
    rows = [stored(database, found) for found in flat]
    assert rows == sorted(rows, key=lambda row: (row.created_at, row.id.hex), reverse=True)


def test_pages_filter_by_name_and_status(database):
    finished_calibration(database, "a")
    finished_calibration(database, "b")
    queue_calibration(database, "a")
    with database.reading() as session:
        repository = CalibrationRepository(session, tenant_of(database))
        names = [row.name for row in repository.page(limit=9, status="succeeded")[0]]
        assert sorted(names) == ["a", "b"]
        found = repository.page(limit=9, name="a", status="queued")[0]
        assert [row.version for row in found] == [2]
        assert repository.page(limit=9, name="a\0")[0] == []


def test_what_is_not_finished_cannot_be_deleted(database):
    row = queue_calibration(database)
    with pytest.raises(Conflict, match="digits@1 is queued: cancel it first"):
        delete(database, row.id)
    queue_of(database).claim()
    with pytest.raises(Conflict, match="running"):
        delete(database, row.id)
    assert stored(database, row.id).status == "running"


def test_deleting_twice_is_not_found(database):
    row = finished_calibration(database)
    delete(database, row.id)
    with pytest.raises(NotFound):
        delete(database, row.id)
    with pytest.raises(NotFound):
        find(database, "digits")


def test_deleting_returns_the_keys_that_nothing_else_refers_to(database):
    first_id, second_id = uuid.uuid4(), uuid.uuid4()
    shared = f"calibrations/{first_id}/model-0"
    first = finished_calibration(
        database,
        artifacts=[new_artifact(first_id), new_artifact(first_id, "model", key=shared)],
    )
    second = finished_calibration(
        database,
        artifacts=[new_artifact(second_id), new_artifact(second_id, "model", key=shared)],
    )
    assert delete(database, first.id) == [f"calibrations/{first_id}/calibration-0"]
    last = sorted([shared, f"calibrations/{second_id}/calibration-0"])
    assert delete(database, second.id) == last


def test_of_two_that_are_deleted_at_once_exactly_one_returns_their_shared_key(database):
    for _ in range(5):
        ids = [uuid.uuid4(), uuid.uuid4()]
        shared = f"calibrations/{ids[0]}/model-0"
        rows = [
            finished_calibration(database, artifacts=[new_artifact(found, "model", key=shared)])
            for found in ids
        ]
        first, second = at_once([partial(delete, database, row.id) for row in rows])
        assert first + second == [shared]


@pytest.mark.parametrize("label", ["a\0b", "x" * 256, "a\ud800"])
def test_a_label_that_is_no_file_name_is_refused_and_leaves_no_row(database, label):
    artifact = new_artifact(uuid.uuid4())
    bad = type(artifact)(**{**vars(artifact), "label": label})
    with pytest.raises(InvalidInput) as caught:
        queue_calibration(database, artifacts=[bad])
    assert caught.value.violations[0].location == "calibration"
    assert versions(database, "digits") == []
    assert queue_calibration(database).version == 1


def test_numbers_that_json_does_not_know_are_refused(database):
    with pytest.raises((ValueError, StatementError), match="JSON"), database.session() as session:
        CalibrationRepository(session, tenant_of(database)).add(
            models.Calibration(
                id=uuid.uuid4(),
                name="digits",
                config={"level": float("nan")},
                data={},
                onnx_model=None,
                versions={},
                warnings=[],
            ),
            [],
        )
    assert versions(database, "digits") == []


def test_a_page_carries_no_long_columns_and_a_calibration_does(database):
    row = queue_calibration(database)
    long = {"model_scores": {"x": 1}, "verdicts": {}, "baselines": {"1": {}}, "mislabelled": None}
    queue = queue_of(database)
    queue.publish(claimed(queue), rows=[], artifacts=[], **long)
    found = find(database, "digits")
    assert {name: getattr(found, name) for name in long} == long
    with database.reading() as session:
        rows, _ = CalibrationRepository(session, tenant_of(database)).page(limit=1)
        assert (rows[0].id, rows[0].status) == (row.id, "succeeded")
        for name in long:
            with pytest.raises(InvalidRequestError, match="raiseload"):
                getattr(rows[0], name)


def test_relationships_are_never_loaded_by_accident(database):
    row = queue_calibration(database)
    with database.reading() as session:
        rows, _ = CalibrationRepository(session, tenant_of(database)).page(limit=1)
        assert rows[0].id == row.id
        with pytest.raises(InvalidRequestError, match="lazy='raise'"):
            _ = rows[0].artifacts


def test_a_tenant_that_several_create_at_once_is_one(database):
    def create():
        with database.session() as session:
            return tenant_named(session, "new")

    assert len(set(at_once([create] * 4))) == 1
    with database.reading() as session:
        named = select(func.count()).where(models.Tenant.name == "new")
        assert session.scalar(named) == 1

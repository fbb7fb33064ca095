import dataclasses
import uuid

import pytest
from sqlalchemy import func, select
from sqlalchemy.exc import InvalidRequestError, StatementError
from stored_rows import (
    InTransactions,
    add_tenant,
    at_once,
    claimed,
    finished_calibration,
    new_artifact,
    queue_calibration,
    queue_of,
    tenant_of,
)

import models
from service.errors import Conflict, InvalidInput, NotFound
from service.storage.calibrations import CalibrationRepository
from service.storage.tenants import ALL_TENANTS, tenant_named


def test_what_is_created_is_found_by_id_and_readable_after_the_session(database, calibrations):
    created = queue_calibration(database, artifacts=[new_artifact(uuid.uuid4())])
    assert (created.version, created.status, created.attempt) == (1, "queued", 0)
    assert created.created_at.utcoffset().total_seconds() == 0
    found = calibrations.find(str(created.id))
    assert found.config == {"name": "digits", "bins": 10}
    assert found.onnx_model is None
    assert found.accuracy is None
    assert found.created_at == created.created_at
    assert [artifact.label for artifact in found.artifacts] == ["calibration.npz"]


def test_versions_count_per_name_and_are_not_reused_after_delete(database, calibrations):
    first = finished_calibration(database)
    second = finished_calibration(database)
    other = finished_calibration(database, "other")
    assert (first.version, second.version, other.version) == (1, 2, 1)
    calibrations.delete(second.id)
    calibrations.delete(first.id)
    assert queue_calibration(database).version == 3


def versions(calibrations):
    rows, _ = calibrations.page(limit=200, name="digits")
    return sorted(row.version for row in rows)


def test_threads_that_create_the_same_name_at_once_get_each_version_once(database, calibrations):
    def create():
        return [queue_calibration(database).version for _ in range(3)]

    returned = [version for found in at_once([create] * 5) for version in found]
    assert sorted(returned) == list(range(1, 16))
    assert versions(calibrations) == list(range(1, 16))


def test_a_name_without_success_means_its_newest_which_is_not_ready(database, calibrations):
    finished_calibration(database, status="failed")
    newest = queue_calibration(database)
    assert calibrations.find("digits").id == newest.id
    with pytest.raises(Conflict, match="digits@2 is not ready: it is queued"):
        calibrations.resolve("digits")
    with pytest.raises(Conflict, match="it is failed"):
        calibrations.find_ready("digits@1")


NOT_FOUND = ["nobody", "digits@2", "digits@", "digits@one", "digits@99999999999999999999", ""]
NOT_FOUND += [str(uuid.UUID(int=0)), "a\0b", "\ud800", "x" * 10_000, "%"]


def test_a_reference_to_nothing_is_not_found(database, calibrations):
    queue_calibration(database)
    for reference in NOT_FOUND:
        with pytest.raises(NotFound) as caught:
            calibrations.find(reference)
        assert caught.value.message.isascii()
        assert len(caught.value.message) < 200


def test_tenants_have_names_and_promotions_of_their_own(database, calibrations):
    """That no repository reads or changes rows of others is in test_row_security."""
    mine, other = finished_calibration(database), add_tenant(database, "other")
    others = InTransactions(database, CalibrationRepository, other)
    with pytest.raises(NotFound, match="did you mean 'digits'"):
        calibrations.find("digit")
    with pytest.raises(NotFound) as refused:
        others.find("digit")
    assert "did you mean" not in str(refused.value)
    theirs = finished_calibration(database, tenant_id=other)
    assert theirs.version == 1
    others.promote(theirs.id)
    assert others.promoted_versions(["digits"]) == {"digits": 1}
    assert calibrations.promoted_versions(["digits"]) == {}
    assert calibrations.find("digits").id == mine.id


def test_pages_go_from_new_to_old_miss_nothing_and_filter(database, calibrations):
    created = [finished_calibration(database, "name-1")]
    created += [queue_calibration(database, f"name-{i % 2}") for i in range(5)]
    first, cursor = calibrations.page(limit=3)
    second, end = calibrations.page(limit=3, cursor=cursor)
    assert (len(first), end) == (3, None), "a page that ends with the last row is the last"
    newest_first = sorted(created, key=lambda row: (row.created_at, row.id.hex), reverse=True)
    assert [row.id for row in [*first, *second]] == [row.id for row in newest_first]
    for only, versions_of_page in (
        ({"status": "succeeded"}, [1]),
        ({"name": "name-1", "status": "queued"}, [3, 2]),
        ({"name": "name-0\0"}, []),
    ):
        rows, _ = calibrations.page(limit=9, **only)
        assert [row.version for row in rows] == versions_of_page


def test_deleting_returns_the_keys_that_nothing_else_refers_to(database, calibrations):
    shared = new_artifact(uuid.uuid4(), "model")
    owned = [new_artifact(uuid.uuid4()) for _ in range(2)]
    first, second = (finished_calibration(database, artifacts=[own, shared]) for own in owned)
    assert calibrations.delete(first.id) == [owned[0].key]
    assert calibrations.delete(second.id) == sorted([shared.key, owned[1].key])
    with pytest.raises(NotFound):
        calibrations.delete(second.id)


def test_what_cannot_be_stored_is_refused_and_leaves_no_row(database, calibrations):
    for label in ("a\0b", "x" * 256, "a\ud800"):
        bad = dataclasses.replace(new_artifact(uuid.uuid4()), label=label)
        with pytest.raises(InvalidInput) as caught:
            queue_calibration(database, artifacts=[bad])
        assert caught.value.violations[0].location == "calibration"
    # JSON has no number that is none.
    columns = {"config": {"level": float("nan")}, "data": {}, "versions": {}, "warnings": []}
    row = models.Calibration(id=uuid.uuid4(), name="digits", onnx_model=None, **columns)
    with pytest.raises((ValueError, StatementError), match="JSON"):
        calibrations.add(row)
    assert versions(calibrations) == []
    assert queue_calibration(database).version == 1


def test_a_page_carries_no_long_columns_and_a_calibration_does(database, calibrations):
    row = queue_calibration(database)
    long = {"model_scores": {"x": 1}, "verdicts": {}, "baselines": {"1": {}}, "mislabelled": None}
    queue = queue_of(database)
    queue.publish(claimed(queue), rows=[], artifacts=[], **long)
    found = calibrations.find("digits")
    assert {name: getattr(found, name) for name in long} == long
    with database.reading(ALL_TENANTS) as session:
        [found], _ = CalibrationRepository(session, tenant_of(database)).page(limit=1)
        assert (found.id, found.status) == (row.id, "succeeded")
        for name in long:
            with pytest.raises(InvalidRequestError, match="raiseload"):
                getattr(found, name)


def test_a_tenant_that_several_create_at_once_is_one(database):
    def create():
        with database.session(ALL_TENANTS) as session:
            return tenant_named(session, "new")

    assert len(set(at_once([create] * 4))) == 1
    with database.reading(ALL_TENANTS) as session:
        named = select(func.count()).where(models.Tenant.name == "new")
        assert session.scalar(named) == 1

import dataclasses
import uuid

import pytest
from sqlalchemy import func, select
from sqlalchemy.exc import StatementError
from stored_rows import (
    InTransactions,
    add_tenant,
    at_once,
    finished_calibration,
    new_artifact,
    queue_calibration,
    tenant_of,
)

import models
from service.errors import InvalidInput, NotFound
from service.storage.calibrations import CalibrationRepository
from service.storage.overview import name_rows
from service.storage.tenants import ALL_TENANTS, tenant_named


def test_threads_that_create_the_same_name_at_once_get_each_version_once(database):
    def create():
        return [queue_calibration(database).version for _ in range(3)]

    versions = [version for one in at_once([create] * 5) for version in one]
    assert sorted(versions) == list(range(1, 16))


NOT_FOUND = ["nobody", "digits@2", "digits@", "digits@one", "digits@99999999999999999999", ""]
NOT_FOUND += [str(uuid.UUID(int=0)), "a\0b", "\ud800", "x" * 10_000, "%"]


def test_a_reference_to_nothing_is_not_found(database, calibrations):
    queue_calibration(database)
    for reference in NOT_FOUND:
        with pytest.raises(NotFound) as caught:
            calibrations.find(reference)
        assert caught.value.message.isascii()
        assert len(caught.value.message) < 200


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


def test_a_tenant_that_several_create_at_once_is_one(database):
    def create():
        with database.session(ALL_TENANTS) as session:
            return tenant_named(session, "new")

    assert len(set(at_once([create] * 4))) == 1
    with database.reading(ALL_TENANTS) as session:
        named = select(func.count()).where(models.Tenant.name == "new")
        assert session.scalar(named) == 1


def test_tenants_have_names_and_promotions_of_their_own(database, calibrations):
    """That no repository reads or changes rows of others is in test_row_security."""
    mine, other = finished_calibration(database), add_tenant(database, "other")
    others = InTransactions(database, CalibrationRepository, other)
    for repository, is_suggested in ((calibrations, True), (others, False)):
        with pytest.raises(NotFound) as refused:
            repository.find("digit")
        assert ("'digits'" in refused.value.message) == is_suggested
    theirs = finished_calibration(database, tenant_id=other)
    assert theirs.version == 1
    others.promote(theirs.id)
    assert others.promoted_versions(["digits"]) == {"digits": 1}
    assert calibrations.promoted_versions(["digits"]) == {}
    assert calibrations.find("digits").id == mine.id


def test_what_cannot_be_stored_is_refused_and_leaves_no_row(database, calibrations):
    for label in ("a\0b", "x" * 256, "a\ud800"):
        artifact = dataclasses.replace(new_artifact(uuid.uuid4()), label=label)
        with pytest.raises(InvalidInput) as refused:
            queue_calibration(database, artifacts=[artifact])
        assert refused.value.violations[0].location == "calibration"
    # JSON has no number that is none.
    columns = {"config": {"level": float("nan")}, "data": {}, "versions": {}, "warnings": []}
    row = models.Calibration(id=uuid.uuid4(), name="digits", onnx_model=None, **columns)
    with pytest.raises((ValueError, StatementError), match="JSON"):
        calibrations.add(row)
    assert queue_calibration(database).version == 1


def test_names_are_searched_without_case_and_wildcards(database):
    """A newer version that failed is named beside the one that a name means."""
    for name in ("A_b", "AXb", "other"):
        finished_calibration(database, name)
    finished_calibration(database, "A_b", status="failed")
    tenant_id = tenant_of(database)
    with database.reading(tenant_id) as session:
        [row] = name_rows(session, tenant_id, limit=10, search="a_B")
        assert (row.name, row.version, row.status, row.failed_version) == ("A_b", 1, "succeeded", 2)
        assert name_rows(session, tenant_id, limit=10, search="%") == []

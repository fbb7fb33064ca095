"""Promotions, refits and evaluations of a calibration, and what they and its deletion wait for."""

import uuid
from functools import partial

import pytest
from stored_rows import (
    attempt,
    finished_calibration,
    held_up,
    new_artifact,
    queue_calibration,
)

import models
from service.errors import Conflict, NotFound
from service.storage.calibration_queries import CalibrationRef
from service.storage.calibrations import CalibrationRepository
from service.storage.evaluations import EvaluationRepository
from service.storage.tenants import ALL_TENANTS


def promote(session, row):
    return CalibrationRepository(session, row.tenant_id).promote(row.id)


def refit(session, row):
    copy = models.Calibration(id=uuid.uuid4(), config={}, warnings=[])
    return CalibrationRepository(session, row.tenant_id).add_refit(row.id, copy)


def evaluate(session, row):
    columns = {"calibration_id": row.id, "name": "rotated", "labelled": True, "data": {}}
    further = models.Evaluation(id=uuid.uuid4(), **columns)
    return EvaluationRepository(session, row.tenant_id).add(further, [])


def delete(session, row):
    return CalibrationRepository(session, row.tenant_id).delete(row.id)


EACH_USE = pytest.mark.parametrize("use", [promote, refit, evaluate], ids=lambda use: use.__name__)


def in_session(database, work, row):
    with database.session(ALL_TENANTS) as session:
        return work(session, row)


def result_after(database, first, second, row):
    """Return the result of the second work on a calibration, which waits for the first."""
    waiting = partial(attempt, in_session, database, second, row)
    return held_up(database.session(ALL_TENANTS), partial(first, row=row), waiting)


@EACH_USE
def test_a_calibration_without_success_cannot_be_used(database, calibrations, evaluations, use):
    finished_calibration(database)
    rows = [finished_calibration(database, status=status) for status in ("failed", "cancelled")]
    for row in (*rows, queue_calibration(database)):
        with pytest.raises(Conflict, match=f"digits@{row.version} .* {row.status}"):
            in_session(database, use, row)
        assert evaluations.of_calibration(row.id) == []
    assert calibrations.resolve("digits").version == 1
    assert calibrations.promoted_versions(["digits"]) == {}
    assert queue_calibration(database).version == 5


@EACH_USE
def test_a_use_waits_for_a_deletion_and_finds_nothing(database, calibrations, use):
    finished_calibration(database)
    row = finished_calibration(database)
    assert isinstance(result_after(database, delete, use, row), NotFound)
    assert calibrations.promoted_versions(["digits"]) == {}
    assert queue_calibration(database).version == 3


def test_a_deletion_waits_for_a_use(database, calibrations, evaluations):
    """It withdraws a promotion, leaves the files to a refit, and is refused by an evaluation."""
    newest_left = finished_calibration(database)
    row = finished_calibration(database)
    assert result_after(database, promote, delete, row) is None
    assert calibrations.promoted_versions(["digits"]) == {}
    assert calibrations.resolve("digits").version == newest_left.version

    row = finished_calibration(database, artifacts=[new_artifact(uuid.uuid4())])
    assert result_after(database, refit, delete, row) is None
    assert calibrations.find("digits@4").artifacts

    assert isinstance(result_after(database, evaluate, delete, newest_left), Conflict)
    assert [found.name for found in evaluations.of_calibration(newest_left.id)] == ["rotated"]


def test_a_name_means_the_promoted_version_else_the_newest_that_succeeded(database, calibrations):
    first, second = finished_calibration(database), finished_calibration(database)
    other = finished_calibration(database, "other")

    def meant():
        """Return the versions of each reference, and those that were promoted."""
        names = ["digits", "other", "unheard-of", "a\N{SNOWMAN}"]
        ways = ("digits", "digits@1", "digits@2", str(first.id), second.id.hex, "other")
        versions = [version_of(calibrations, way) for way in ways]
        return versions, calibrations.promoted_versions(names)

    assert meant() == ([2, 1, 2, 1, 2, 1], {})
    calibrations.promote(first.id)
    newest = finished_calibration(database)
    assert meant() == ([1, 1, 2, 1, 2, 1], {"digits": 1})
    for _ in range(2):
        calibrations.promote(second.id)
    assert meant() == ([2, 1, 2, 1, 2, 1], {"digits": 2})
    calibrations.delete(first.id)
    assert meant() == ([2, None, 2, None, 2, 1], {"digits": 2})
    calibrations.delete(second.id)
    finished_calibration(database, status="failed")
    queue_calibration(database)
    calibrations.delete(other.id)
    assert meant() == ([3, None, None, None, None, None], {})
    # Without a success a name means its newest, which is not ready.
    calibrations.delete(newest.id)
    assert calibrations.find("digits").version == 5
    with pytest.raises(Conflict, match="digits@5"):
        calibrations.resolve("digits")


def version_of(calibrations, reference):
    """Return the version that `find` and `resolve` agree on; None if neither finds one."""
    row, ref = (attempt(search, reference) for search in (calibrations.find, calibrations.resolve))
    if isinstance(row, NotFound):
        assert isinstance(ref, NotFound)
        return None
    assert ref == CalibrationRef(row.id, row.name, row.version)
    return row.version

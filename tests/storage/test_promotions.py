from functools import partial

import pytest
from stored_rows import (
    InTransactions,
    add_tenant,
    attempt,
    finished_calibration,
    held_up,
    queue_calibration,
)

from service.errors import Conflict, NotFound
from service.storage.calibrations import CalibrationRepository


def test_a_name_means_what_was_promoted_last(database, calibrations):
    first, second = finished_calibration(database), finished_calibration(database)
    returned = calibrations.promote(first.id)
    assert (returned.id, returned.version, returned.status) == (first.id, 1, "succeeded")
    assert calibrations.resolve("digits").version == 1
    finished_calibration(database)
    assert calibrations.resolve("digits").version == 1
    calibrations.promote(second.id)
    calibrations.promote(second.id)
    assert calibrations.resolve("digits").version == 2


def test_promoting_leaves_other_names_alone(database, calibrations):
    row = finished_calibration(database)
    for _ in range(2):
        finished_calibration(database, "other")
    calibrations.promote(row.id)
    assert calibrations.resolve("other").version == 2
    names = ["digits", "other", "unheard-of", "a\N{SNOWMAN}"]
    assert calibrations.promoted_versions(names) == {"digits": 1}
    assert calibrations.promoted_versions([]) == {}


@pytest.mark.parametrize("status", ["failed", "cancelled"])
def test_what_has_not_succeeded_is_not_promoted(database, status, calibrations):
    finished_calibration(database)
    row = finished_calibration(database, status=status)
    with pytest.raises(Conflict, match=f"digits@2 is not ready: it is {status}"):
        calibrations.promote(row.id)
    with pytest.raises(Conflict, match="digits@3 is not ready: it is queued"):
        calibrations.promote(queue_calibration(database).id)
    assert calibrations.resolve("digits").version == 1
    assert calibrations.promoted_versions(["digits"]) == {}


def test_another_tenant_promotes_nothing_and_has_promotions_of_its_own(database, calibrations):
    mine = finished_calibration(database)
    other = add_tenant(database, "other")
    others = InTransactions(database, CalibrationRepository, other)
    theirs = finished_calibration(database, tenant_id=other)
    with pytest.raises(NotFound):
        others.promote(mine.id)
    others.promote(theirs.id)
    assert calibrations.promoted_versions(["digits"]) == {}
    assert others.promoted_versions(["digits"]) == {"digits": 1}


def test_deleting_what_was_promoted_withdraws_that(database, calibrations):
    first, second = finished_calibration(database), finished_calibration(database)
    calibrations.promote(first.id)
    calibrations.delete(second.id)
    assert calibrations.promoted_versions(["digits"]) == {"digits": 1}
    calibrations.delete(first.id)
    assert calibrations.promoted_versions(["digits"]) == {}
    with pytest.raises(NotFound):
        calibrations.promote(first.id)


def test_a_deletion_waits_for_a_promotion_and_withdraws_it(database, calibrations):
    newest_left = finished_calibration(database)
    row = finished_calibration(database)
    held_up(
        database.session(),
        lambda session: CalibrationRepository(session, row.tenant_id).promote(row.id),
        partial(calibrations.delete, row.id),
    )
    assert calibrations.promoted_versions(["digits"]) == {}
    assert calibrations.resolve("digits").version == newest_left.version


def test_a_promotion_waits_for_a_deletion_and_finds_nothing(database, calibrations):
    finished_calibration(database)
    row = finished_calibration(database)
    refused = held_up(
        database.session(),
        lambda session: CalibrationRepository(session, row.tenant_id).delete(row.id),
        partial(attempt, calibrations.promote, row.id),
    )
    assert isinstance(refused, NotFound)
    assert calibrations.promoted_versions(["digits"]) == {}

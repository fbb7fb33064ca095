from functools import partial

import pytest
from storage_rows import add_tenant, finished_calibration, queue_calibration, tenant_of
from storage_threads import held_up

from service.errors import Conflict, NotFound
from service.storage.calibrations import CalibrationRepository


def promote(database, row, tenant_id=None):
    with database.session() as session:
        return CalibrationRepository(session, tenant_id or tenant_of(database)).promote(row.id)


def delete(database, row):
    with database.session() as session:
        return CalibrationRepository(session, tenant_of(database)).delete(row.id)


def meaning(database, name="digits"):
    with database.reading() as session:
        return CalibrationRepository(session, tenant_of(database)).resolve(name).version


def promoted(database, *names, tenant_id=None):
    with database.reading() as session:
        repository = CalibrationRepository(session, tenant_id or tenant_of(database))
        return repository.promoted_versions(names)


def attempt(work):
    try:
        return work()
    except NotFound as refused:
        return refused


def test_a_name_means_what_was_promoted_last(database):
    first, second = finished_calibration(database), finished_calibration(database)
    returned = promote(database, first)
    assert (returned.id, returned.version, returned.status) == (first.id, 1, "succeeded")
    assert meaning(database) == 1
    finished_calibration(database)
    assert meaning(database) == 1
    promote(database, second)
    promote(database, second)
    assert meaning(database) == 2


def test_promoting_leaves_other_names_alone(database):
    row = finished_calibration(database)
    for _ in range(2):
        finished_calibration(database, "other")
    promote(database, row)
    assert meaning(database, "other") == 2
    assert promoted(database, "digits", "other", "unheard-of", "a\N{SNOWMAN}") == {"digits": 1}
    assert promoted(database) == {}


@pytest.mark.parametrize("status", ["failed", "cancelled"])
def test_what_has_not_succeeded_is_not_promoted(database, status):
    finished_calibration(database)
    row = finished_calibration(database, status=status)
    with pytest.raises(Conflict, match=f"digits@2 is not ready: it is {status}"):
        promote(database, row)
    with pytest.raises(Conflict, match="digits@3 is not ready: it is queued"):
        promote(database, queue_calibration(database))
    assert meaning(database) == 1
    assert promoted(database, "digits") == {}


def test_another_tenant_promotes_nothing_and_has_promotions_of_its_own(database):
    mine = finished_calibration(database)
    other = add_tenant(database, "other")
    theirs = finished_calibration(database, tenant_id=other)
    with pytest.raises(NotFound):
        promote(database, mine, other)
    promote(database, theirs, other)
    assert promoted(database, "digits") == {}
    assert promoted(database, "digits", tenant_id=other) == {"digits": 1}


def test_deleting_what_was_promoted_withdraws_that(database):
    first, second = finished_calibration(database), finished_calibration(database)
    promote(database, first)
    delete(database, second)
    assert promoted(database, "digits") == {"digits": 1}
    delete(database, first)
    assert promoted(database, "digits") == {}
    with pytest.raises(NotFound):
        promote(database, first)


def test_a_deletion_waits_for_a_promotion_and_withdraws_it(database):
    newest_left = finished_calibration(database)
    row = finished_calibration(database)
    held_up(
        database.session(),
        lambda session: CalibrationRepository(session, row.tenant_id).promote(row.id),
        partial(delete, database, row),
    )
    assert promoted(database, "digits") == {}
    assert meaning(database) == newest_left.version


def test_a_promotion_waits_for_a_deletion_and_finds_nothing(database):
    finished_calibration(database)
    row = finished_calibration(database)
    refused = held_up(
        database.session(),
        lambda session: CalibrationRepository(session, row.tenant_id).delete(row.id),
        partial(attempt, partial(promote, database, row)),
    )
    assert isinstance(refused, NotFound)
    assert promoted(database, "digits") == {}

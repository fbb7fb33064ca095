"""Refits: calibrations that share the files of another, whichever of them is deleted first."""

import uuid
from datetime import timedelta
from functools import partial

import pytest
from sqlalchemy import select
from storage_rows import (
    add_tenant,
    claimed,
    finished_calibration,
    finished_evaluation,
    new_artifact,
    queue_calibration,
    queue_of,
    tenant_of,
)
from storage_threads import at_once, held_up

import models
from service.errors import Conflict, NotFound
from service.storage.artifact_store import open_artifact_store
from service.storage.calibrations import CalibrationRepository
from service.storage.orphans import remove_orphans

ROLES = ("model", "model_data", "calibration", "evaluation", "records", "evaluation_records")


def source_of(database, name="digits", roles=ROLES):
    """Return a finished calibration with a file of each role, results among them."""
    made = uuid.uuid4()
    results = {"records", "evaluation_records"}
    uploads = [new_artifact(made, role) for role in roles if role not in results]
    row = queue_calibration(database, name, artifacts=uploads, calibration_id=made)
    queue = queue_of(database)
    published = [new_artifact(made, role) for role in roles if role in results]
    queue.publish(claimed(queue), rows=[], artifacts=published, keep_sets=True, accuracy={"1": 0.9})
    return row


def refits(source, new_id=None):
    def create(session):
        return CalibrationRepository(session, source.tenant_id).add_refit(
            source.id,
            models.Calibration(
                id=new_id or uuid.uuid4(), config={"bins": 20}, warnings=["refitted"]
            ),
        )

    return create


def refit(database, source):
    with database.session() as session:
        return refits(source)(session)


def finished_refit(database, source):
    row = refit(database, source)
    queue = queue_of(database)
    queue.publish(claimed(queue), rows=[], artifacts=[], accuracy={"1": 0.8})
    return row


def get(database, calibration_id):
    with database.reading() as session:
        return CalibrationRepository(session, tenant_of(database)).get(calibration_id)


def newest(database):
    with database.reading() as session:
        rows, _ = CalibrationRepository(session, tenant_of(database)).page(limit=1)
    return rows[0]


def delete(database, calibration):
    with database.session() as session:
        return CalibrationRepository(session, tenant_of(database)).delete(calibration.id)


def attempt(work):
    """Return what a work that races returns, or how it was refused."""
    try:
        return work()
    except (Conflict, NotFound) as refused:
        return refused


def files(row):
    return [(f.role, f.position, f.label, f.key, f.sha256, f.size) for f in row.artifacts]


def keys_of(source):
    return sorted(new_artifact(source.id, role).key for role in ROLES)


def test_a_refit_is_the_next_version_of_the_name_and_has_the_same_files(database):
    source = source_of(database)
    queue_calibration(database)
    created = refit(database, source)
    found, original = get(database, created.id), get(database, source.id)
    assert (found.name, found.version, found.status) == ("digits", 3, "queued")
    assert (found.refit_of, original.refit_of) == (source.id, None)
    assert (found.config, found.warnings) == ({"bins": 20}, ["refitted"])
    for column in ("data", "onnx_model", "versions"):
        assert getattr(found, column) == getattr(original, column)
    assert (found.accuracy, found.serve) == (None, None)
    assert files(found) == files(original)
    assert len(found.artifacts) == len(ROLES)
    assert found.created_at > original.created_at


def test_evaluations_stay_with_the_calibration_that_was_evaluated(database):
    source = source_of(database)
    further = new_artifact(source.id, key=f"calibrations/{source.id}/evaluations/x/set")
    finished_evaluation(database, source, artifacts=[further])
    row = finished_refit(database, source)
    assert further.key not in [file.key for file in get(database, row.id).artifacts]
    assert delete(database, source) == [further.key]


@pytest.mark.parametrize("status", ["failed", "cancelled"])
def test_what_has_not_succeeded_is_not_fitted_anew(database, status):
    row = finished_calibration(database, status=status)
    with pytest.raises(Conflict, match=f"digits@1 is not ready: it is {status}"):
        refit(database, row)
    queued = queue_calibration(database)
    with pytest.raises(Conflict, match="digits@2 is not ready: it is queued"):
        refit(database, queued)
    assert queue_calibration(database).version == 3


def test_what_is_not_there_or_another_tenants_is_not_fitted_anew(database):
    source = source_of(database)
    other = add_tenant(database, "other")
    with pytest.raises(NotFound), database.session() as session:
        CalibrationRepository(session, other).add_refit(
            source.id, models.Calibration(id=uuid.uuid4(), config={}, warnings=[])
        )
    delete(database, source)
    with pytest.raises(NotFound):
        refit(database, source)


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 2, 0)])
def test_files_stay_until_the_last_who_refers_to_them_goes(database, order):
    source = source_of(database)
    first = finished_refit(database, source)
    family = [source, first, finished_refit(database, first)]
    assert family[2].refit_of == first.id
    rows = [family[i] for i in order]
    assert delete(database, rows[0]) == []
    assert delete(database, rows[1]) == []
    assert files(get(database, rows[2].id))
    assert delete(database, rows[2]) == keys_of(source)


def test_a_refit_outlives_its_source_with_all_files(database):
    source = source_of(database)
    row = finished_refit(database, source)
    store = open_artifact_store("memory://")
    lost = f"calibrations/{source.id}/records-of-a-lost-attempt"
    for key in [*keys_of(source), lost]:
        store.put_bytes(key, b"x")
    store.delete(delete(database, source))
    assert remove_orphans(database, store, older_than=timedelta(hours=-1)).removed == 1
    assert store.keys() == keys_of(source)
    again = finished_refit(database, row)
    assert (again.version, again.refit_of) == (3, row.id)
    assert get(database, row.id).refit_of == source.id, "though that is gone"
    assert delete(database, again) == []
    store.delete(delete(database, row))
    assert store.keys() == []


def test_a_source_waits_for_who_fits_it_anew_and_then_leaves_the_files(database):
    source = source_of(database)
    keys = held_up(database.session(), refits(source), partial(delete, database, source))
    assert keys == []
    row = newest(database)
    assert files(get(database, row.id))


def test_who_fits_anew_waits_for_the_end_of_the_source_and_finds_none(database):
    source = source_of(database)
    refused = held_up(
        database.session(),
        lambda session: CalibrationRepository(session, source.tenant_id).delete(source.id),
        partial(attempt, partial(refit, database, source)),
    )
    assert isinstance(refused, NotFound)
    assert queue_calibration(database).version == 2


def test_refits_and_deletions_that_race_lose_no_file_and_leave_none(database):
    """Of a family that is fitted anew and deleted at once, what remains keeps every file."""
    for i in range(6):
        source = source_of(database, f"race-{i}")
        family = [source, finished_refit(database, source)]
        works = [partial(attempt, partial(refit, database, row)) for row in family]
        works += [partial(attempt, partial(delete, database, row)) for row in family]
        *created, first, second = at_once(works)
        rows = [row for row in created if isinstance(row, models.Calibration)]
        if rows:
            assert first + second == []
            assert [files(get(database, row.id)) for row in rows]
        else:
            assert sorted(first + second) == keys_of(source)
        for row in rows:
            with database.session() as session:
                CalibrationRepository(session, row.tenant_id).request_cancel(row.id)
        last = [delete(database, row) for row in rows]
        assert not rows or sorted(last[-1]) == keys_of(source)


def test_a_copy_that_was_made_while_a_deletion_waited_keeps_the_file(database):
    """Who shares a file is asked anew once nobody can change it.

    A deletion waits for the file of a stranger. Meanwhile its elder is fitted anew and deleted:
    the copy refers to the common file, and the deletion began when there was none.
    """
    if database.dialect == "sqlite":
        pytest.skip("has one writer at a time")
    stranger_file = new_artifact(uuid.uuid4(), "model", key=f"calibrations/{uuid.UUID(int=0)}/a")
    common_file = new_artifact(uuid.uuid4(), "records", key=f"calibrations/{uuid.UUID(int=1)}/b")
    finished_calibration(database, "stranger", artifacts=[stranger_file])
    elder = finished_calibration(database, "elder", artifacts=[common_file])
    younger = finished_calibration(database, "younger", artifacts=[stranger_file, common_file])

    def lock(session):
        query = select(models.Artifact).where(models.Artifact.key == stranger_file.key)
        session.execute(query.with_for_update()).all()

    def copy_and_delete(_session):
        refit(database, elder)
        assert delete(database, elder) == []

    keys = held_up(
        database.session(), lock, partial(delete, database, younger), then=copy_and_delete
    )
    assert keys == []
    assert [file.key for file in get(database, newest(database).id).artifacts] == [common_file.key]


def test_a_refit_leaves_its_source_unchanged(database):
    source = source_of(database)
    before = get(database, source.id)
    finished_refit(database, source)
    after = get(database, source.id)
    for column in models.Calibration.__table__.columns:
        assert getattr(after, column.key) == getattr(before, column.key)
    assert files(after) == files(before)


def test_a_promoted_refit_is_the_version_of_its_name(database):
    source = source_of(database)
    row = finished_refit(database, source)
    with database.session() as session:
        repository = CalibrationRepository(session, tenant_of(database))
        repository.promote(source.id)
        assert repository.resolve("digits").id == source.id
        repository.promote(row.id)
        assert repository.resolve("digits").id == row.id
    assert get(database, row.id).status == "succeeded"

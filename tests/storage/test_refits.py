"""Refits: calibrations that share the files of another, whichever of them is deleted first."""

import uuid
from functools import partial

import pytest
from sqlalchemy import select
from stored_rows import (
    InTransactions,
    claimed,
    finished_calibration,
    finished_evaluation,
    held_up,
    new_artifact,
    queue_calibration,
    queue_of,
)

import models
from service.storage.calibrations import CalibrationRepository
from service.storage.tenants import ALL_TENANTS

ROLES = ("model", "model_data", "calibration", "evaluation", "records", "evaluation_records")


def source_of(database, name="digits"):
    """Return a finished calibration with a file of each role."""
    folder = uuid.uuid4()
    files = [new_artifact(folder, role) for role in ROLES]
    return finished_calibration(database, name, artifacts=files)


def refit(calibrations, source):
    row = models.Calibration(id=uuid.uuid4(), config={"bins": 20}, warnings=["refitted"])
    return calibrations.add_refit(source.id, row)


def finished_refit(database, source):
    """Return a refit that has ended, and keeps all files: whoever is deleted last removes them."""
    row = refit(InTransactions(database, CalibrationRepository), source)
    queue = queue_of(database)
    queue.publish(claimed(queue), rows=[], artifacts=[], accuracy={"1": 0.8})
    return row


def files(row):
    return [(f.role, f.position, f.label, f.key, f.sha256, f.size) for f in row.artifacts]


def keys_of(row):
    return sorted(file.key for file in row.artifacts)


def test_a_refit_is_the_next_version_of_the_name_and_has_the_same_files(database, calibrations):
    """Those of evaluations stay with the calibration that was evaluated."""
    source = source_of(database)
    further = new_artifact(source.id, key=f"calibrations/{source.id}/evaluations/x/set")
    finished_evaluation(database, source, artifacts=[further])
    queue_calibration(database)
    created = refit(calibrations, source)
    row, original = calibrations.get(created.id), calibrations.get(source.id)
    assert (row.name, row.version, row.status) == ("digits", 3, "queued")
    assert (row.refit_of, original.refit_of) == (source.id, None)
    assert (row.config, row.warnings) == ({"bins": 20}, ["refitted"])
    for column in ("data", "onnx_model", "versions"):
        assert getattr(row, column) == getattr(original, column)
    assert (row.accuracy, row.serve) == (None, None)
    assert files(row) == files(original)
    assert len(row.artifacts) == len(ROLES)
    assert calibrations.delete(source.id) == [further.key]


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0)])
def test_files_stay_until_the_last_who_refers_to_them_goes(database, order, calibrations):
    source = source_of(database)
    keys = keys_of(calibrations.get(source.id))
    first = finished_refit(database, source)
    family = [source, first, finished_refit(database, first)]
    assert family[2].refit_of == first.id
    rows = [family[i] for i in order]
    assert calibrations.delete(rows[0].id) == []
    assert calibrations.delete(rows[1].id) == []
    last = calibrations.get(rows[2].id)
    assert files(last)
    assert last.refit_of == family[order[2]].refit_of, "though that is gone"
    assert calibrations.delete(rows[2].id) == keys


def test_a_copy_that_was_made_while_a_deletion_waited_keeps_the_file(database, calibrations):
    """Who shares a file is asked anew once nobody can change it.

    A deletion waits for the file of a stranger. Meanwhile its elder is fitted anew and deleted:
    the copy refers to the common file, and the deletion began when there was none.
    """
    if database.dialect == "sqlite":
        pytest.skip("has one writer at a time")
    stranger_file = new_artifact(uuid.UUID(int=0), "model")
    common_file = new_artifact(uuid.UUID(int=1), "records")
    finished_calibration(database, "stranger", artifacts=[stranger_file])
    elder = finished_calibration(database, "elder", artifacts=[common_file])
    younger = finished_calibration(database, "younger", artifacts=[stranger_file, common_file])

    def lock(session):
        query = select(models.Artifact).where(models.Artifact.key == stranger_file.key)
        session.execute(query.with_for_update()).all()

    copies = []

    def copy_and_delete(_session):
        copies.append(refit(calibrations, elder))
        assert calibrations.delete(elder.id) == []

    deletion = partial(calibrations.delete, younger.id)
    keys = held_up(database.session(ALL_TENANTS), lock, deletion, then=copy_and_delete)
    assert keys == []
    [file] = calibrations.get(copies[0].id).artifacts
    assert file.key == common_file.key

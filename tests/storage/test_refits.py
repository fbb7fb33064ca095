"""Refits: calibrations that share the files of another, whichever of them is deleted first."""

import os
import uuid
from datetime import timedelta

import pytest
from stored_rows import (
    InTransactions,
    claimed,
    finished_calibration,
    finished_evaluation,
    new_artifact,
    queue_calibration,
    queue_of,
)

import models
from service.storage.artifact_store import open_artifact_store
from service.storage.calibrations import CalibrationRepository
from service.storage.orphans import remove_orphans, remove_released

HOUR = timedelta(hours=1)
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


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0)])
def test_files_go_an_hour_after_the_last_who_refers_to_them(
    database, order, calibrations, tmp_path
):
    """However long ago they were written."""
    source = source_of(database)
    further = new_artifact(source.id, key=f"calibrations/{source.id}/evaluations/x/set")
    finished_evaluation(database, source, artifacts=[further])
    keys, store = keys_of(calibrations.get(source.id)), open_artifact_store(str(tmp_path))
    for key in (*keys, further.key):
        store.put_bytes(key, b"x")
        os.utime(tmp_path / key, (0, 0))
    first = finished_refit(database, source)
    family = [source, first, finished_refit(database, first)]
    assert family[2].refit_of == first.id
    for place in order:
        assert set(keys) <= set(store.keys())
        row = calibrations.get(family[place].id)
        assert files(row)
        assert row.refit_of == family[place].refit_of, "though that may be gone"
        calibrations.delete(row.id)
        assert remove_orphans(database, store, older_than=HOUR).removed == 0
        lost = [further.key] if row.id == source.id else []
        lost += keys if place == order[-1] else []
        assert remove_released(database, store, older_than=timedelta()) == len(lost)
        assert not {*lost} & {*store.keys()}
    assert store.keys() == []

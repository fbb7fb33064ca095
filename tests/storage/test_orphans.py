"""What the sweeper removes from artifact stores, and what it leaves."""

import os
import uuid
from datetime import timedelta

import pytest
from databases import BOTH_DIALECTS
from object_stores import WrappedStore
from stored_rows import (
    evaluation_queue_of,
    finished_calibration,
    finished_evaluation,
    new_artifact,
    queue_calibration,
    queue_evaluation,
)

from service.storage.artifact_keys import ROOT
from service.storage.artifact_store import StoredFile, open_artifact_store
from service.storage.orphans import PAGE, Swept, remove_orphans

HOUR = timedelta(hours=1)
# Later than whatever was written, also where clocks differ a little.
LATER = timedelta(hours=-1)


@pytest.fixture
def dialect():
    return "sqlite"


def swept(database, store, *, older_than=LATER):
    return remove_orphans(database, store, older_than=older_than).removed


def put_all(store, keys):
    for key in keys:
        store.put_bytes(key, b"x")


@BOTH_DIALECTS
def test_files_without_a_calibration_are_removed_and_no_others(database, store):
    lost = f"calibrations/{uuid.uuid4()}/calibration-0"
    gone_id = uuid.uuid4()
    shared = f"calibrations/{gone_id}/model-0"
    row = finished_calibration(database, artifacts=[new_artifact(gone_id, "model", key=shared)])
    unpublished = f"calibrations/{row.id}/records-0"
    running = queue_calibration(database, "running")
    shard = f"calibrations/{running.id}/shards/0.npz"
    orphans = [lost, f"calibrations/{gone_id}/records-0", unpublished]
    put_all(store, [shared, shard, *orphans])
    assert swept(database, store, older_than=HOUR) == 0
    for swept_now in (Swept(files=5, removed=3), Swept(files=2, removed=0)):
        assert remove_orphans(database, store, older_than=LATER) == swept_now
        assert store.keys() == sorted([shared, shard])


def test_the_files_of_an_evaluation_are_left_while_it_is_there_or_may_publish(database):
    store = open_artifact_store("memory://")
    calibration = finished_calibration(database)
    folder = f"calibrations/{calibration.id}/evaluations"
    kept = new_artifact(calibration.id, "evaluation_records", key=f"{folder}/a/records")
    finished_evaluation(database, calibration, "a", artifacts=[kept])
    lost = f"{folder}/a/records-of-a-lost-attempt"
    queue_evaluation(database, calibration, "b")
    put_all(store, [kept.key, lost, f"{folder}/b/records"])
    assert swept(database, store) == 0
    queue = evaluation_queue_of(database)
    queue.fail(queue.claim(), {"title": "Test"})
    assert swept(database, store) == 2
    assert store.keys() == [kept.key]


@pytest.fixture
def folder_store(folder):
    return open_artifact_store(str(folder))


def let_be_old(folder, *keys):
    """Let files have been written long ago."""
    for key in keys:
        os.utime(folder / key, (0, 0))


def test_one_young_file_or_put_under_way_protects_its_calibration(database, folder_store, folder):
    being_created, dead = uuid.UUID(int=1), uuid.UUID(int=2)
    files = [f"calibrations/{i}/{name}" for i in (being_created, dead) for name in "ab"]
    put_all(folder_store, files)
    part = f"calibrations/{being_created}/c#1"
    (folder / part).write_bytes(b"half")
    let_be_old(folder, files[0], *files[2:])
    assert swept(database, folder_store, older_than=HOUR) == 2
    assert folder_store.keys() == files[:2]
    let_be_old(folder, files[1])
    assert swept(database, folder_store, older_than=HOUR) == 0
    let_be_old(folder, part)
    assert swept(database, folder_store, older_than=HOUR) == 3
    assert list(folder.iterdir()) == []


class Behind(WrappedStore):
    """A full store whose clock is two hours behind."""

    def put_bytes(self, key, content):
        assert not content, "there is room for a name and for nothing else"
        return super().put_bytes(key, content)

    def files(self, prefix=ROOT):
        for file in super().files(prefix):
            yield StoredFile(file.key, file.modified - 2 * HOUR)


def test_files_are_as_old_as_the_clock_of_the_store_says(database, folder_store, folder):
    young, old = (f"calibrations/{uuid.UUID(int=i)}/model-0" for i in range(2))
    put_all(folder_store, [young, old])
    let_be_old(folder, old)
    assert swept(database, Behind(folder_store), older_than=HOUR) == 1
    assert folder_store.keys() == [young]


class Interrupted(WrappedStore):
    """A store in which something happens when the sweeper has listed it, before it deletes."""

    def __init__(self, store, happen):
        super().__init__(store)
        self._happen = happen

    def files(self, prefix=ROOT):
        yield from list(super().files(prefix))
        if prefix == ROOT:
            happen, self._happen = self._happen, lambda: None
            happen()


def test_what_changes_while_the_store_is_listed(database, folder_store, folder):
    """What is created or written anew then stays, and what is deleted is no error."""
    made = uuid.uuid4()
    created = new_artifact(made)
    old, new = (f"calibrations/{uuid.UUID(int=7)}/{name}" for name in ("model-0", "model-1"))
    gone = [f"calibrations/{uuid.UUID(int=i)}/model-0" for i in range(2)]
    put_all(folder_store, [created.key, old, *gone])
    let_be_old(folder, created.key, old, *gone)

    def happen():
        queue_calibration(database, artifacts=[created], calibration_id=made)
        folder_store.put_bytes(new, b"x")
        folder_store.delete(gone)

    swept(database, Interrupted(folder_store, happen), older_than=HOUR)
    assert folder_store.keys() == sorted([created.key, old, new])


def test_a_calibration_of_more_files_than_a_page_is_swept(database):
    store, made = open_artifact_store("memory://"), uuid.UUID(int=2**64)
    artifacts = [new_artifact(made, role) for role in ("model", "records")]
    finished_calibration(database, artifacts=artifacts)
    kept = [artifact.key for artifact in artifacts]
    lost = [f"calibrations/{made}/shards/{i}" for i in range(2 * PAGE)]
    lost += [f"calibrations/{uuid.UUID(int=i)}/model-0" for i in (1, 2**65)]
    put_all(store, kept + lost)
    assert swept(database, store) == len(lost)
    assert store.keys() == kept


def test_a_sweep_that_is_to_stop_leaves_the_rest(database):
    store = open_artifact_store("memory://")
    left = f"calibrations/{uuid.UUID(int=2)}/model-0"
    put_all(store, [left, *(f"calibrations/{uuid.UUID(int=1)}/{i}" for i in range(PAGE))])
    swept = remove_orphans(database, store, older_than=LATER, go_on=lambda: False)
    assert swept == Swept(files=PAGE, removed=PAGE)
    assert store.keys() == [left]

import hashlib
import io
import os
import subprocess
import uuid
from datetime import timedelta
from functools import partial

import pytest
from storage_rows import (
    evaluation_queue_of,
    finished_calibration,
    finished_evaluation,
    new_artifact,
    queue_calibration,
    queue_evaluation,
)
from storage_threads import at_once

from service.errors import ArtifactDamaged, StorageFull
from service.storage.artifacts import CHUNK_BYTES, open_artifact_store
from service.storage.orphans import remove_orphans

CALIBRATION = "0b8f6a1e-5d0c-4c3e-9d62-3a1f0c9b7e55"
KEY = f"calibrations/{CALIBRATION}/model-0"


@pytest.fixture(params=["folder", "memory"])
def store(request, tmp_path):
    location = str(tmp_path / "artifacts") if request.param == "folder" else "memory://"
    return open_artifact_store(location)


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "artifacts"


@pytest.fixture
def folder_store(folder):
    return open_artifact_store(str(folder))


@pytest.mark.parametrize("size", [0, 1, CHUNK_BYTES, 2 * CHUNK_BYTES + 3])
def test_a_file_comes_back_as_it_was(store, tmp_path, size):
    content = os.urandom(size)
    (tmp_path / "upload").write_bytes(content)
    stored = store.put_file(KEY, tmp_path / "upload")
    assert (stored.sha256, stored.size) == (hashlib.sha256(content).hexdigest(), size)
    assert store.get_bytes(KEY, stored.sha256) == content
    with store.local_path(KEY, stored.sha256) as path:
        assert path.read_bytes() == content


def test_bytes_come_back_and_may_be_replaced(store):
    store.put_bytes(KEY, b"first")
    stored = store.put_bytes(KEY, b"second")
    assert store.get_bytes(KEY, stored.sha256) == b"second"


def test_a_store_in_a_folder_hands_out_its_own_file(folder_store, folder):
    stored = folder_store.put_bytes(KEY, b"content")
    with folder_store.local_path(KEY, stored.sha256) as path:
        assert path == folder / KEY
    assert path.exists()


def test_a_copy_is_gone_after_its_use():
    store = open_artifact_store("memory://")
    stored = store.put_bytes(KEY, b"content")
    with store.local_path(KEY, stored.sha256) as path:
        assert path.exists()
    assert not path.exists()


def test_what_is_not_what_was_stored_is_refused(store):
    stored = store.put_bytes(KEY, b"content")
    store.put_bytes(KEY, b"c0ntent")
    with pytest.raises(ArtifactDamaged, match="not what was stored"):
        store.get_bytes(KEY, stored.sha256)
    with pytest.raises(ArtifactDamaged), store.local_path(KEY, stored.sha256):
        pytest.fail("a damaged file was handed out")


def test_an_unverified_path_is_of_what_lies_there(store):
    store.put_bytes(KEY, b"content")
    with store.unverified_path(KEY) as path:
        assert path.read_bytes() == b"content"
    store.put_bytes(KEY, b"c0ntent")
    with store.unverified_path(KEY) as path:
        assert path.read_bytes() == b"c0ntent"


def test_a_bit_flipped_on_the_disk_is_noticed(folder_store, folder):
    stored = folder_store.put_bytes(KEY, b"content")
    (folder / KEY).write_bytes(b"consent")
    with pytest.raises(ArtifactDamaged):
        folder_store.get_bytes(KEY, stored.sha256)


def test_a_missing_file_is_told_without_a_path_of_this_machine(store, tmp_path):
    with pytest.raises(ArtifactDamaged, match="missing") as caught:
        store.get_bytes(KEY, "0" * 64)
    assert str(tmp_path) not in caught.value.message
    assert KEY not in caught.value.message
    with pytest.raises(ArtifactDamaged, match="missing"), store.local_path(KEY, "0" * 64):
        pytest.fail("a missing file was handed out")
    with pytest.raises(ArtifactDamaged, match="missing"), store.unverified_path(KEY):
        pytest.fail("a missing file was handed out")


@pytest.mark.parametrize(
    "key",
    [
        "",
        "/etc/passwd",
        "model.onnx",
        "calibrations/../../etc/passwd",
        f"calibrations/{CALIBRATION}/../x",
        f"calibrations/{CALIBRATION}/.hidden",
        f"calibrations/{CALIBRATION}/a//b",
        f"calibrations/{CALIBRATION}/a/",
        f"calibrations/{CALIBRATION}/a\n",
        f"calibrations/{CALIBRATION}/ä",
        f"calibrations/{CALIBRATION}",
        f"calibrations/{CALIBRATION.upper()}/a",
        f"calibrations/{CALIBRATION}/" + "a" * 500,
    ],
)
def test_a_key_that_the_server_did_not_make_is_refused(store, key, tmp_path):
    for use in (
        lambda: store.put_bytes(key, b""),
        lambda: store.put_file(key, tmp_path / os.devnull),
        lambda: store.get_bytes(key, "0" * 64),
        lambda: store.local_path(key, "0" * 64).__enter__(),
        lambda: store.delete([key]),
    ):
        with pytest.raises(ValueError, match="not an artifact key"):
            use()


def test_keys_are_listed_below_a_prefix(store):
    other = f"calibrations/{uuid.uuid4()}/model-0"
    for key in (other, f"{KEY}.data", KEY, f"calibrations/{CALIBRATION}/shards/0.npz"):
        store.put_bytes(key, b"x")
    mine = [KEY, f"{KEY}.data", f"calibrations/{CALIBRATION}/shards/0.npz"]
    assert store.keys(f"calibrations/{CALIBRATION}") == mine
    assert store.keys() == sorted([other, *mine])
    assert store.keys(f"calibrations/{CALIBRATION}/shards") == mine[2:]
    assert store.keys(older_than=timedelta(hours=1)) == []
    assert len(store.keys(older_than=timedelta(0))) == 4
    with pytest.raises(ValueError, match="prefix"):
        store.keys("..")


def test_deleting_leaves_no_file_and_no_folder(folder_store, folder):
    folder_store.put_bytes(KEY, b"x")
    folder_store.put_bytes(f"calibrations/{CALIBRATION}/shards/0", b"x")
    folder_store.delete([KEY, f"calibrations/{CALIBRATION}/shards/0"])
    assert list(folder.iterdir()) == []


def test_deleting_what_is_not_there_is_no_error(store):
    store.put_bytes(KEY, b"x")
    store.delete([f"{KEY}-absent", KEY, KEY])
    assert store.keys() == []


def test_an_upload_that_breaks_off_leaves_no_file(folder_store, folder):
    class Broken(io.BytesIO):
        def open(self, _mode):
            return self

        def read(self, size):
            if self.tell():
                raise OSError(5, "Input/output error")
            return super().read(size)

    with pytest.raises(OSError, match="Input/output error"):
        folder_store.put_file(KEY, Broken(bytes(2 * CHUNK_BYTES)))
    assert [path for path in folder.rglob("*") if path.is_file()] == []


@pytest.fixture
def small_folder(tmp_path):
    """A file system of one mebibyte."""
    folder = tmp_path / "small"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(folder)]
    if subprocess.run(mount, capture_output=True, check=False).returncode != 0:
        pytest.skip("mounting a small file system needs privileges")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def test_a_full_disk_is_told_and_leaves_no_file(small_folder, tmp_path):
    store = open_artifact_store(str(small_folder))
    (tmp_path / "upload").write_bytes(bytes(3 * 1024**2))
    for put in (
        lambda: store.put_file(KEY, tmp_path / "upload"),
        lambda: store.put_bytes(KEY, bytes(3 * 1024**2)),
    ):
        with pytest.raises(StorageFull):
            put()
    assert [path for path in small_folder.rglob("*") if path.is_file()] == []
    store.put_bytes(KEY, b"a small one still fits")


def test_threads_may_put_and_delete_side_by_side(folder_store):
    def work(number):
        for i in range(20):
            key = f"calibrations/{CALIBRATION}/shards/{number}-{i}"
            stored = folder_store.put_bytes(key, b"x" * number)
            assert folder_store.get_bytes(key, stored.sha256) == b"x" * number
            folder_store.delete([key])

    at_once([partial(work, i) for i in range(8)])


def test_a_store_may_be_named_by_a_file_url(tmp_path):
    stored = open_artifact_store(f"file://{tmp_path}/artifacts").put_bytes(KEY, b"x")
    assert open_artifact_store(str(tmp_path / "artifacts")).get_bytes(KEY, stored.sha256) == b"x"


@pytest.mark.parametrize("location", ["s3://bucket/folder", "https://host/folder"])
def test_other_stores_are_refused(location):
    with pytest.raises(ValueError, match="artifacts are kept in"):
        open_artifact_store(location)


def test_files_without_a_calibration_are_removed_and_no_others(database, store):
    lost = f"calibrations/{uuid.uuid4()}/calibration-0"
    gone_id = uuid.uuid4()
    shared = f"calibrations/{gone_id}/model-0"
    row = finished_calibration(database, artifacts=[new_artifact(gone_id, "model", key=shared)])
    unpublished = f"calibrations/{row.id}/records-0"
    running = queue_calibration(database, "running")
    shard = f"calibrations/{running.id}/shards/0.npz"
    orphans = [lost, f"calibrations/{gone_id}/records-0", unpublished]
    for key in (shared, shard, *orphans):
        store.put_bytes(key, b"x")
    assert remove_orphans(database, store) == []
    removed = remove_orphans(database, store, older_than=timedelta(0))
    assert sorted(removed) == sorted(orphans)
    assert store.keys() == sorted([shared, shard])


def test_the_files_of_an_evaluation_are_left_while_it_is_there_or_may_publish(database, store):
    calibration = finished_calibration(database)
    folder = f"calibrations/{calibration.id}/evaluations"
    kept = new_artifact(calibration.id, "evaluation", key=f"{folder}/a/set")
    finished_evaluation(database, calibration, "a", artifacts=[kept])
    lost = f"{folder}/a/records-of-a-lost-attempt"
    queue_evaluation(database, calibration, "b")
    to_be_published = f"{folder}/b/records"
    for key in (kept.key, lost, to_be_published):
        store.put_bytes(key, b"x")
    assert remove_orphans(database, store, older_than=timedelta(0)) == []
    queue = evaluation_queue_of(database)
    queue.fail(queue.claim(), {"title": "Test"})
    assert remove_orphans(database, store, older_than=timedelta(0)) == [lost, to_be_published]
    assert store.keys() == [kept.key]

"""The contract of artifact stores, of whatever kind."""

import hashlib
import os
import uuid
from functools import partial
from pathlib import Path

import pytest
from stored_rows import at_once

from service.errors import ArtifactDamaged
from service.storage.artifact_store import CHUNK_BYTES, open_artifact_store

CALIBRATION = "0b8f6a1e-5d0c-4c3e-9d62-3a1f0c9b7e55"
KEY = f"calibrations/{CALIBRATION}/model-0"


def test_a_file_comes_back_as_it_was(store, tmp_path):
    for size in (0, 1, CHUNK_BYTES, 2 * CHUNK_BYTES + 3):
        content = os.urandom(size)
        (tmp_path / "upload").write_bytes(content)
        stored = store.put_file(KEY, tmp_path / "upload")
        assert (stored.sha256, stored.size) == (hashlib.sha256(content).hexdigest(), size)
        assert store.get_bytes(KEY, stored.sha256) == content
        with store.local_path(KEY, stored.sha256) as path:
            assert path.read_bytes() == content


def test_a_copy_is_gone_after_its_use(s3_location, tmp_path):
    store = open_artifact_store(s3_location, copies=tmp_path)
    stored = store.put_bytes(KEY, b"content")
    with store.local_path(KEY, stored.sha256) as path:
        assert path.is_relative_to(tmp_path)
        assert path.exists()
    assert list(tmp_path.iterdir()) == []


def test_what_is_not_what_was_stored_is_refused_where_it_is_verified(store):
    stored = store.put_bytes(KEY, b"content")
    store.put_bytes(KEY, b"c0ntent")
    with pytest.raises(ArtifactDamaged):
        store.get_bytes(KEY, stored.sha256)
    with pytest.raises(ArtifactDamaged), store.local_path(KEY, stored.sha256):
        pytest.fail("a damaged file was handed out")
    with store.unverified_path(KEY) as path:
        assert path.read_bytes() == b"c0ntent"


def test_a_missing_file_is_told_without_a_path_of_this_machine(store, tmp_path):
    for read in (
        lambda: store.get_bytes(KEY, "0" * 64),
        lambda: store.local_path(KEY, "0" * 64).__enter__(),
        lambda: store.unverified_path(KEY).__enter__(),
    ):
        with pytest.raises(ArtifactDamaged, match="missing") as refused:
            read()
        assert str(tmp_path) not in refused.value.message
        assert KEY not in refused.value.message


BAD_NAMES = ("../x", ".hidden", "a//b", "a\n", "ä", "a" * 500)
BAD_KEYS = ["", "/etc/passwd", "model.onnx", f"calibrations/{CALIBRATION.upper()}/a"]
BAD_KEYS += [f"calibrations/{CALIBRATION}/{name}" for name in BAD_NAMES]
USES = {
    "put bytes": lambda store, key: store.put_bytes(key, b""),
    "put a file": lambda store, key: store.put_file(key, Path(os.devnull)),
    "get bytes": lambda store, key: store.get_bytes(key, "0" * 64),
    "get a path": lambda store, key: store.local_path(key, "0" * 64).__enter__(),
    "delete": lambda store, key: store.delete([key]),
}


@pytest.mark.parametrize("key", BAD_KEYS, ids=range(len(BAD_KEYS)))
@pytest.mark.parametrize("use", USES)
def test_a_key_that_the_server_did_not_make_is_refused(use, key):
    with pytest.raises(ValueError, match="not an artifact key"):
        USES[use](open_artifact_store("memory://"), key)


def test_keys_are_listed_below_a_prefix_and_deleted(store):
    other = f"calibrations/{uuid.uuid4()}/model-0"
    for key in (other, f"{KEY}.data", KEY, f"calibrations/{CALIBRATION}/shards/0.npz"):
        store.put_bytes(key, b"x")
    mine = [KEY, f"{KEY}.data", f"calibrations/{CALIBRATION}/shards/0.npz"]
    assert store.keys(f"calibrations/{CALIBRATION}") == mine
    assert store.keys() == sorted([other, *mine])
    assert store.keys(f"calibrations/{CALIBRATION}/shards") == mine[2:]
    assert store.keys(f"calibrations/{uuid.uuid4()}") == []
    with pytest.raises(ValueError, match="prefix"):
        store.keys("..")
    store.delete([f"{KEY}-absent", KEY, KEY, *mine[2:]])
    store.delete([])
    assert store.keys() == sorted([mine[1], other])


def test_threads_may_put_and_delete_side_by_side(store):
    def work(number):
        for i in range(10):
            key = f"calibrations/{CALIBRATION}/shards/{number}-{i}"
            stored = store.put_bytes(key, b"x" * number)
            assert store.get_bytes(key, stored.sha256) == b"x" * number
            store.delete([key])

    # The S3 server of the tests keeps folders, and would remove an empty one below a new file.
    stays = f"calibrations/{CALIBRATION}/shards/stays"
    store.put_bytes(stays, b"")
    at_once([partial(work, i) for i in range(6)])
    assert store.keys() == [stays]


LOCATIONS = {"ftp://host/folder": "ftp://", "s3://": "bucket", "az://container/folder": "Account"}


@pytest.mark.parametrize(("location", "words"), LOCATIONS.items())
def test_a_location_that_is_none_is_refused(location, words):
    with pytest.raises(ValueError, match=words):
        open_artifact_store(location)

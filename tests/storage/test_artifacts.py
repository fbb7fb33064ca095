"""The contract of artifact stores, of whatever kind."""

import hashlib
import os
import uuid
from functools import partial

import pytest
from stored_rows import at_once

from service.errors import ArtifactDamaged
from service.storage.artifact_store import CHUNK_BYTES, open_artifact_store

CALIBRATION = "0b8f6a1e-5d0c-4c3e-9d62-3a1f0c9b7e55"
KEY = f"calibrations/{CALIBRATION}/model-0"


@pytest.mark.parametrize("size", [0, 1, CHUNK_BYTES, 2 * CHUNK_BYTES + 3])
def test_a_file_comes_back_as_it_was(store, tmp_path, size):
    content = os.urandom(size)
    (tmp_path / "upload").write_bytes(content)
    stored = store.put_file(KEY, tmp_path / "upload")
    assert (stored.sha256, stored.size) == (hashlib.sha256(content).hexdigest(), size)
    assert store.get_bytes(KEY, stored.sha256) == content
    with store.local_path(KEY, stored.sha256) as path:
        assert path.read_bytes() == content


@pytest.mark.parametrize("location", ["memory://", "s3"])
def test_a_copy_is_gone_after_its_use(location, request, tmp_path):
    if location == "s3":
        location = request.getfixturevalue("s3_location")
    store = open_artifact_store(location, copies=tmp_path)
    stored = store.put_bytes(KEY, b"content")
    with store.local_path(KEY, stored.sha256) as path:
        assert path.is_relative_to(tmp_path)
        assert path.exists()
    assert list(tmp_path.iterdir()) == []


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
        f"calibrations/{CALIBRATION}/../x",
        f"calibrations/{CALIBRATION}/.hidden",
        f"calibrations/{CALIBRATION}/a//b",
        f"calibrations/{CALIBRATION}/a\n",
        f"calibrations/{CALIBRATION}/ä",
        f"calibrations/{CALIBRATION.upper()}/a",
        f"calibrations/{CALIBRATION}/" + "a" * 500,
    ],
)
def test_a_key_that_the_server_did_not_make_is_refused(key, tmp_path):
    store = open_artifact_store("memory://")
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
    assert store.keys(f"calibrations/{uuid.uuid4()}") == []
    with pytest.raises(ValueError, match="prefix"):
        store.keys("..")


def test_deleting_what_is_not_there_is_no_error(store):
    kept = f"{KEY}.data"
    for key in (KEY, kept):
        store.put_bytes(key, b"x")
    store.delete([f"{KEY}-absent", KEY, KEY])
    store.delete([])
    assert store.keys() == [kept]


def test_threads_may_put_and_delete_side_by_side(store):
    def work(number):
        for i in range(20):
            key = f"calibrations/{CALIBRATION}/shards/{number}-{i}"
            stored = store.put_bytes(key, b"x" * number)
            assert store.get_bytes(key, stored.sha256) == b"x" * number
            store.delete([key])

    # The S3 server of the tests keeps folders, and would remove an empty one below a new file.
    stays = f"calibrations/{CALIBRATION}/shards/stays"
    store.put_bytes(stays, b"")
    at_once([partial(work, i) for i in range(8)])
    assert store.keys() == [stays]


@pytest.mark.parametrize(
    ("location", "told"),
    [
        ("https://host/folder", "not at https://"),
        ("ftp://host/folder", "not at ftp://"),
        ("s3://", "expected s3://bucket/folder"),
        ("az://container/folder", "Account must be specified"),
    ],
)
def test_a_location_that_is_none_is_refused(location, told):
    with pytest.raises(ValueError, match=told):
        open_artifact_store(location)

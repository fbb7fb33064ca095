"""The artifact store in a folder: what lies there after whatever happened."""

import errno
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from own_process import file_size_limit
from runner_children import wait_until

from service.errors import Overloaded, StorageFull
from service.storage.artifact_store import CHUNK_BYTES, open_artifact_store

FOLDER = "calibrations/0b8f6a1e-5d0c-4c3e-9d62-3a1f0c9b7e55"
KEY = f"{FOLDER}/model-0"


@pytest.fixture
def store(folder):
    return open_artifact_store(str(folder))


def files_below(folder):
    return [path for path in folder.rglob("*") if path.is_file()]


def test_a_store_hands_out_its_own_file_and_deletes_folders_with_it(store, folder):
    """Files of others are neither listed nor in the way."""
    others = folder / "calibrations" / "lost+found"
    others.mkdir(parents=True)
    (others / "#1").touch()
    stored = store.put_bytes(KEY, b"content")
    with store.local_path(KEY, stored.sha256) as path:
        assert path == folder / KEY
    by_url = open_artifact_store(f"file://{folder}")
    assert by_url.get_bytes(KEY, stored.sha256) == b"content"
    store.put_bytes(f"{FOLDER}/shards/0", b"x")
    assert [file.key for file in store.files()] == [KEY, f"{FOLDER}/shards/0"]
    store.delete([KEY, f"{FOLDER}/shards/0"])
    assert list((folder / "calibrations").iterdir()) == [others]


PUT_STANDARD_INPUT = """
import sys
from pathlib import Path
from service.storage.artifact_store import open_artifact_store

open_artifact_store(sys.argv[1]).put_file(sys.argv[2], Path("/dev/stdin"))
"""


@pytest.mark.process
def test_an_upload_that_is_killed_leaves_what_the_sweeper_can_see(store, folder):
    command = [sys.executable, "-c", PUT_STANDARD_INPUT, folder, KEY]
    with subprocess.Popen(command, stdin=subprocess.PIPE) as child:
        child.stdin.write(bytes(CHUNK_BYTES + 1))
        assert wait_until(lambda: files_below(folder))
        child.kill()
    assert child.returncode == -signal.SIGKILL
    assert store.keys() == []
    left = [file.key for file in store.files()]
    assert left == [f"{KEY}#1"]
    stored = store.put_bytes(KEY, b"again")
    store.delete(left)
    assert [file.key for file in store.files()] == [KEY]
    assert store.get_bytes(KEY, stored.sha256) == b"again"


def test_a_folder_that_cannot_be_used_is_no_bug_and_has_no_new_file(store, folder, monkeypatch):
    def broken(number):
        yield bytes(CHUNK_BYTES)
        raise OSError(number, os.strerror(number))

    for number in (errno.EIO, errno.EACCES):
        with pytest.raises(Overloaded, match=os.strerror(number)):
            store.put_buffers(KEY, broken(number))
    assert files_below(folder) == []
    stored = store.put_bytes(KEY, b"content")
    with monkeypatch.context() as patch:
        patch.setattr(Path, "unlink", lambda *_, **__: list(broken(errno.EACCES)))
        with pytest.raises(Overloaded, match="Permission denied"):
            store.delete([KEY])
    assert store.get_bytes(KEY, stored.sha256) == b"content"


def test_no_space_is_told_and_leaves_no_file(store, folder, tmp_path):
    path = tmp_path / "upload"
    for n_bytes in (3 * 2**20, CHUNK_BYTES + 1):  # of several chunks, and of two
        path.write_bytes(bytes(n_bytes))
        with file_size_limit(2**20), pytest.raises(StorageFull):
            store.put_file(KEY, path)
    with file_size_limit(2**20):
        with pytest.raises(StorageFull):
            store.put_bytes(KEY, bytes(3 * 2**20))
        store.put_bytes(f"{KEY}.data", b"a small one still fits")
    assert files_below(folder) == [folder / f"{KEY}.data"]

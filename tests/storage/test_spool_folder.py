"""Uploads under way lie in a folder that dies with its process."""

import os
from pathlib import Path

import pytest
from howsure_command import FORKS

from service.storage.file_locks import SpoolFolder

pytestmark = pytest.mark.process


def hold_a_folder(parent, pipe):
    folder = SpoolFolder.within(parent)
    (folder.path / "upload").write_bytes(b"x")
    pipe.send(folder.path)
    pipe.recv()
    os._exit(0)  # as a process that is killed


def test_the_living_keep_theirs_and_the_dead_do_not(tmp_path: Path) -> None:
    ours, its_end = FORKS.Pipe()
    other = FORKS.Process(target=hold_a_folder, args=(tmp_path, its_end))
    other.start()
    path = ours.recv()
    mine = SpoolFolder.within(tmp_path)
    assert (path / "upload").exists()
    assert mine.path != path

    ours.send("die")
    other.join(60)
    SpoolFolder.within(tmp_path).remove()
    assert not path.exists()
    assert mine.path.exists()
    mine.remove()
    assert [left.name for left in tmp_path.iterdir()] == [".lock"]

"""Uploads under way lie in a folder that dies with its process."""

import os
from pathlib import Path

from service.storage.file_locks import SpoolFolder


def test_the_living_keep_theirs_and_the_dead_do_not(tmp_path: Path) -> None:
    """That locks end with a killed process is in tests/jobs/test_owner."""
    mine, other = SpoolFolder.within(tmp_path), SpoolFolder.within(tmp_path)
    (other.path / "upload").write_bytes(b"x")
    SpoolFolder.within(tmp_path).remove()
    assert (other.path / "upload").exists()
    assert mine.path != other.path
    os.close(other._lock)
    SpoolFolder.within(tmp_path).remove()
    assert not other.path.exists()
    assert mine.path.exists()
    mine.remove()
    assert [left.name for left in tmp_path.iterdir()] == [".lock"]

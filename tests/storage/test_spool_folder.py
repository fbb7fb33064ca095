"""Uploads under way lie in a folder that dies with its process."""

import subprocess
import sys

from service.storage.file_locks import SpoolFolder

HOLD = """
import sys
from pathlib import Path
from service.storage.file_locks import SpoolFolder
folder = SpoolFolder.within(Path(sys.argv[1]))
(folder.path / "upload").write_bytes(b"x")
print(folder.path, flush=True)
sys.stdin.read()
"""


def test_the_living_keep_theirs_and_the_dead_do_not(tmp_path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as other:
        path = tmp_path / other.stdout.readline().strip()
        mine = SpoolFolder.within(tmp_path)
        assert (path / "upload").exists()
        assert mine.path != path

        other.kill()
        other.wait()
        SpoolFolder.within(tmp_path).remove()
        assert not path.exists()
        assert mine.path.exists()
        mine.remove()
    assert [found.name for found in tmp_path.iterdir()] == [".lock"]

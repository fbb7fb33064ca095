"""A folder becomes a tar file that is read as the set it is."""

import hashlib
import os
import tarfile
from pathlib import Path

import pytest
from picture_files import class_folders

from service.cli.calibrate import one_file
from service.cli.failure import CommandFailed


def write(folder: Path, files: dict[str, bytes]) -> Path:
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return folder


def names_in(path: Path) -> list[str]:
    with tarfile.open(path) as archive:
        return archive.getnames()


def test_hidden_files_are_left_out_and_empty_folders_kept(tmp_path: Path) -> None:
    """What is read of class folders is in tests/child; of a packed one, in tests/client."""
    files = class_folders()
    hidden = {".git/x.png": b"", "cat/.DS_Store": b"", "a.md": b""}
    folder = write(tmp_path / "pets", files | hidden)
    (folder / "cow").mkdir()
    with one_file(folder) as path:
        assert sorted(names_in(path)) == sorted([*files, "a.md", "cow"])
    assert not path.exists()


def test_classes_are_mixed_and_the_files_of_a_picture_lie_together(tmp_path: Path) -> None:
    endings = ("png", "cls", "json")
    files = {f"{k:02d}/{i}.{end}": b"" for k in range(20) for i in range(30) for end in endings}
    with one_file(write(tmp_path / "set", files)) as path:
        names = names_in(path)
    keys = [name.split(".")[0] for name in names]
    assert keys[::3] == keys[1::3] == keys[2::3]
    assert {key.split("/")[0] for key in keys[:256]} == {f"{k:02d}" for k in range(20)}


def test_the_same_folder_is_the_same_bytes(tmp_path: Path) -> None:
    digests = set()
    for k in range(2):
        folder = write(tmp_path / f"copy{k}", dict(sorted(class_folders().items(), reverse=k == 1)))
        os.utime(folder / "cat/0.png", (k * 1000, k * 1000))
        (folder / "dog/0.png").chmod(0o600 if k else 0o644)
        with one_file(folder) as path:
            digests.add(hashlib.sha256(path.read_bytes()).hexdigest())
    assert len(digests) == 1


def test_what_cannot_be_packed_is_refused(tmp_path: Path) -> None:
    folder = write(tmp_path / "set", class_folders())
    link = folder / "cat/link.png"
    for target in ("0.png", "/etc", "nowhere"):
        link.symlink_to(target)
        with pytest.raises(CommandFailed, match=r"cat/link\.png"), one_file(folder):
            pass
        link.unlink()
    (tmp_path / "empty").mkdir()
    with pytest.raises(CommandFailed, match="contains no files"), one_file(tmp_path / "empty"):
        pass

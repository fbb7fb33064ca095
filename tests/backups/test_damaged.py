"""A backup that is not what was written is refused, and the error names the part."""

import hashlib
import json
import os
import shutil
from functools import partial
from pathlib import Path

import msgspec
import pytest
from schema_rows import held

from service.backups.back_up import silent
from service.backups.format import NAME, Manifest, read_manifest, sealed
from service.backups.restore import restore, verify
from service.errors import Conflict, InvalidInput


def flip_a_bit(content):
    place = len(content) // 2
    return content[:place] + bytes([content[place] ^ 4]) + content[place + 1 :]


KEYS = ["../../etc/passwd", "/etc/passwd", "calibrations/x", ""]
HARMS = (
    flip_a_bit,
    lambda content: content[:-1],
    lambda content: b"".join(content.splitlines(keepends=True)[:-1]),
)
# No JSON, no row, too few values, too deep, other values.
ROWS = [b"{", b"7", b'["x"]', b"[" * 100_000, json.dumps([2**70] * 40).encode()]


def test_every_part_is_missed(stored_backup, empty_place, tmp_path):
    backup = shutil.copytree(stored_backup, tmp_path / "backup")
    parts = [path for path in sorted(backup.rglob("*")) if path.is_file()]
    assert len(parts) > 20
    for part in parts:
        content = part.read_bytes()
        for harm in (Path.unlink, *(partial(Path.write_bytes, data=h(content)) for h in HARMS)):
            harm(part)
            with pytest.raises(InvalidInput, match=str(part.relative_to(backup))):
                verify(backup, read_manifest(backup), silent)
        part.write_bytes(content)
    into = empty_place("sqlite")
    parts[-1].unlink()
    with pytest.raises(InvalidInput, match=parts[-1].name):
        restore(into.url, into.artifacts, backup)
    assert held(into.url) == {}
    assert into.artifacts.keys() == []


def forge(backup, part_of, line):
    """Put another line into a part, sealed as if it had been written; return the part's path."""
    content = json.loads(msgspec.json.encode(read_manifest(backup)))
    part, line = part_of(content), line + b"\n"
    (backup / part["path"]).write_bytes(line)
    part |= {"sha256": hashlib.sha256(line).hexdigest(), "lines": 1}
    (backup / NAME).write_bytes(sealed(msgspec.convert(content, Manifest)))
    return part["path"]


@pytest.mark.parametrize("dialect", ["sqlite", "postgresql"])
def test_lines_that_are_no_rows_are_refused(stored_backup, dialect, empty_place, tmp_path):
    into = empty_place(dialect, migrated=True)
    before = held(into.url)
    for case, line in enumerate(ROWS):
        backup = shutil.copytree(stored_backup, tmp_path / f"{case}")
        path = forge(backup, lambda manifest: manifest["tables"][-1]["part"], line)
        with pytest.raises(InvalidInput, match=path):
            restore(into.url, into.artifacts, backup)
        assert held(into.url) == before, case


def test_keys_that_are_none_are_refused(stored_backup, tmp_path):
    backup = shutil.copytree(stored_backup, tmp_path / "backup")
    for key in KEYS:
        line = json.dumps({"key": key, "sha256": "0" * 64, "size": 0}).encode()
        path = forge(backup, lambda manifest: manifest["files"]["part"], line)
        with pytest.raises(InvalidInput, match=path):
            verify(backup, read_manifest(backup), silent)


def test_what_is_no_backup_is_refused(empty_place, tmp_path):
    into = empty_place("sqlite")
    (tmp_path / "file").write_text("{}")
    for source in (tmp_path, tmp_path / "file", tmp_path / "nowhere"):
        with pytest.raises(InvalidInput, match=str(source)):
            restore(into.url, into.artifacts, source)


def test_parts_that_are_no_files_are_refused(stored_backup, empty_place, tmp_path):
    """Neither is another file read, nor is a pipe waited for."""
    into = empty_place("sqlite")
    moved = tmp_path / "moved"
    for harm in (lambda part: part.symlink_to(moved), os.mkfifo, Path.mkdir):
        for name in (NAME, "files.jsonl", "rows/calibration.jsonl", "files/*", "rows", "files"):
            backup = shutil.copytree(stored_backup, tmp_path / "backup")
            part = next(backup.glob(name))
            part.rename(moved)
            harm(part)
            with pytest.raises(InvalidInput, match=str(part.relative_to(backup))):
                restore(into.url, into.artifacts, backup)
            shutil.rmtree(backup)
            shutil.rmtree(moved) if moved.is_dir() else moved.unlink()
    assert into.artifacts.keys() == []


def test_files_that_become_links_are_not_followed(stored_backup, empty_place, tmp_path):
    into, backup = empty_place("sqlite"), shutil.copytree(stored_backup, tmp_path / "backup")

    def swap(stage, done, total):
        is_checked = (stage, done) == ("checking", total)
        for part in backup.glob("files/*") if is_checked else ():
            part.rename(tmp_path / part.name)
            part.symlink_to(tmp_path / part.name)

    with pytest.raises(InvalidInput, match="files/"):
        restore(into.url, into.artifacts, backup, tell=swap)
    assert into.artifacts.keys() == []


def test_a_backup_is_not_written_through_a_link(stored, tmp_path):
    (other := tmp_path / "other").mkdir()
    (other / "kept").touch()
    (tmp_path / "new.partial").symlink_to(other)
    with pytest.raises(Conflict, match="no folder"):
        stored.back_up(tmp_path / "new")
    assert [path.name for path in other.iterdir()] == ["kept"]


@pytest.mark.parametrize("dialect", ["sqlite", "postgresql"])
def test_only_tables_of_the_models_are_restored(stored_backup, dialect, empty_place, tmp_path):
    into = empty_place(dialect, migrated=True)
    before = held(into.url)
    for case, change in enumerate(({"name": "alembic_version"}, {"columns": {"x": "text"}})):
        backup = shutil.copytree(stored_backup, tmp_path / f"{case}")
        content = json.loads(msgspec.json.encode(read_manifest(backup)))
        content["tables"][-1] |= change
        (backup / NAME).write_bytes(sealed(msgspec.convert(content, Manifest)))
        with pytest.raises(InvalidInput, match=NAME):
            restore(into.url, into.artifacts, backup)
        assert held(into.url) == before

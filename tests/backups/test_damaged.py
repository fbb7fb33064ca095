"""A backup that is not what was written is refused, and the sentence names the part."""

import hashlib
import json
import shutil

import msgspec
import pytest
from schema_rows import held

from service.backups.format import NAME, Manifest, read_manifest, sealed
from service.backups.restore import restore
from service.errors import InvalidInput


@pytest.fixture
def dialect():
    """The parts are the same, whatever database they come from."""
    return "sqlite"


def flip_a_bit(path):
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 4
    path.write_bytes(content)


def cut_short(path):
    path.write_bytes(path.read_bytes()[:-1])


def lose_a_line(path):
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:-1]))


@pytest.mark.parametrize("harm", [flip_a_bit, cut_short, lose_a_line, lambda path: path.unlink()])
def test_every_part_is_missed(backup, dialect, empty_place, tmp_path, harm):
    into = empty_place(dialect)
    parts = sorted(path.relative_to(backup) for path in backup.rglob("*") if path.is_file())
    assert len(parts) > 20
    for part in parts:
        harmed = tmp_path / "harmed"
        shutil.copytree(backup, harmed)
        harm(harmed / part)
        with pytest.raises(InvalidInput, match=str(part)):
            restore(into.url, into.artifacts, harmed)
        shutil.rmtree(harmed)
    assert held(into.url) == {}
    assert into.artifacts.keys() == []


ROWS = {
    "no JSON": b"{",
    "no row": b"7",
    "too few values": b'["x"]',
    "deep": b"[" * 100_000,
    "other values": json.dumps([2**70] * 40).encode(),
}


def forged(backup, folder, change):
    """Copy a backup with other lines in a part, sealed as if they had been written."""
    shutil.copytree(backup, folder)
    manifest = read_manifest(backup)
    content = json.loads(msgspec.json.encode(manifest))
    part, lines = change(content)
    (folder / part["path"]).write_bytes(lines + b"\n")
    part |= {"sha256": hashlib.sha256(lines + b"\n").hexdigest(), "lines": 1}
    (folder / NAME).write_bytes(sealed(msgspec.convert(content, Manifest)))
    return part["path"]


@pytest.mark.parametrize("lines", ROWS.values(), ids=ROWS)
@pytest.mark.parametrize("to", ["sqlite", "postgresql"])
def test_lines_that_are_no_rows_are_refused(backup, empty_place, tmp_path, lines, to):
    into = empty_place(to)
    folder = tmp_path / "forged"
    path = forged(backup, folder, lambda manifest: (manifest["tables"][-1]["part"], lines))
    with pytest.raises(InvalidInput, match=path):
        restore(into.url, into.artifacts, folder)
    assert held(into.url) == {}


@pytest.mark.parametrize("key", ["../../etc/passwd", "/etc/passwd", "calibrations/x", ""])
def test_keys_that_are_none_are_refused(backup, dialect, empty_place, tmp_path, key):
    into = empty_place(dialect)
    line = json.dumps({"key": key, "sha256": "0" * 64, "size": 0}).encode()
    folder = tmp_path / "forged"
    path = forged(backup, folder, lambda manifest: (manifest["files"]["part"], line))
    with pytest.raises(InvalidInput, match=path):
        restore(into.url, into.artifacts, folder)


def test_what_is_no_backup_is_refused(dialect, empty_place, tmp_path):
    into = empty_place(dialect)
    (tmp_path / "file").write_text("{}")
    for source in (tmp_path, tmp_path / "file", tmp_path / "nowhere"):
        with pytest.raises(InvalidInput, match=r"expected the folder of a whole backup"):
            restore(into.url, into.artifacts, source)

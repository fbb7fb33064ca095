"""A backup that is not what was written is refused, and the sentence names the part."""

import shutil

import pytest
from schema_rows import held

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


def test_what_is_no_backup_is_refused(dialect, empty_place, tmp_path):
    into = empty_place(dialect)
    (tmp_path / "file").write_text("{}")
    for source in (tmp_path, tmp_path / "file", tmp_path / "nowhere"):
        with pytest.raises(InvalidInput, match=r"expected the folder of a whole backup"):
            restore(into.url, into.artifacts, source)

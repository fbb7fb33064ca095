"""A backup that is killed is none, and a restore that is killed leaves an empty database."""

import pytest
from interrupted_writes import KILLED, back_up_until, begun, restore_until, status
from schema_rows import held
from stored_rows import assert_files_are_those_of_the_rows

from service.backups.restore import restore
from service.errors import InvalidInput

pytestmark = pytest.mark.process


@pytest.mark.parametrize("every", [9, pytest.param(3, marks=pytest.mark.slow)])
def test_a_killed_backup_is_none_and_the_next_one_is_whole(stored, tmp_path, empty_place, every):
    target, died = tmp_path / "backup", 0
    arguments = (stored.url, stored.folder, target)
    into = empty_place("sqlite")
    while (ended := status(begun(back_up_until, every * died + 1, *arguments))) == KILLED:
        died += 1
        assert not target.exists()
        with pytest.raises(InvalidInput, match="a whole backup"):
            restore(into.url, into.artifacts, tmp_path / "backup.partial")
    assert ended == 0
    assert died > 9 // every
    assert not (tmp_path / "backup.partial").exists()
    restore(into.url, into.artifacts, target)
    assert_files_are_those_of_the_rows(into)


@pytest.mark.parametrize("every", [60, pytest.param(25, marks=pytest.mark.slow)])
def test_a_killed_restore_leaves_nothing_to_the_next(stored, stored_backup, empty_place, every):
    """At every so many of: files verified, files stored, statements that write, commits."""
    into, died = empty_place("sqlite"), 0
    arguments = (into.url, into.folder, stored_backup)
    while (ended := status(begun(restore_until, every * died + 1, *arguments))) == KILLED:
        died += 1
        assert held(into.url) == {}
    assert ended == 0
    assert died > 75 // every
    other = empty_place("sqlite")
    restore(other.url, other.artifacts, stored_backup)
    assert into.rows() == other.rows()
    assert_files_are_those_of_the_rows(into)

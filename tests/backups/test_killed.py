"""A backup that is killed is none, and a restore that is killed leaves an empty database."""

import os
import signal

import pytest
from howsure_command import FORKS
from schema_rows import held
from sqlalchemy import Engine, event
from stored_rows import StoredPlace, assert_files_are_those_of_the_rows

from service.backups.restore import restore
from service.errors import InvalidInput

KILLED = -signal.SIGKILL


class Doom:
    """Kills the process when it is told something for the time of this number."""

    def __init__(self, place):
        self.left = place

    def __call__(self, *_):
        self.left -= 1
        if self.left == 0:
            os.kill(os.getpid(), signal.SIGKILL)


def back_up_until(place, url, folder, target):
    StoredPlace(url, folder).back_up(target, tell=Doom(place))


def writes(statement):
    return not statement.lstrip().startswith(("SELECT", "PRAGMA"))


def restore_until(place, url, folder, source):
    doom, into = Doom(place), StoredPlace(url, folder)
    event.listen(Engine, "before_cursor_execute", lambda _c, _d, said, *_: writes(said) and doom())
    event.listen(Engine, "commit", doom)
    restore(into.url, into.artifacts, source, tell=doom)


def status(work, *arguments):
    process = FORKS.Process(target=work, args=arguments, daemon=True)
    process.start()
    process.join(60)
    return process.exitcode


@pytest.mark.parametrize("dialect", ["sqlite"])
def test_a_killed_backup_is_none_and_the_next_one_is_whole(place, tmp_path, empty_place):
    target, died = tmp_path / "backup", 0
    into = empty_place("sqlite")
    while (ended := status(back_up_until, 3 * died + 1, place.url, place.folder, target)) == KILLED:
        died += 1
        assert not target.exists()
        with pytest.raises(InvalidInput, match="a whole backup"):
            restore(into.url, into.artifacts, tmp_path / "backup.partial")
    assert ended == 0
    assert died > 3
    assert not (tmp_path / "backup.partial").exists()
    restore(into.url, into.artifacts, target)
    assert_files_are_those_of_the_rows(into)


def test_a_killed_restore_leaves_an_empty_database_and_the_next_one_is_whole(
    backup, dialect, empty_place
):
    """At every twenty-fifth of: files verified, files stored, statements that write, commits."""
    into, died = empty_place(dialect), 0
    while (ended := status(restore_until, 25 * died + 1, into.url, into.folder, backup)) == KILLED:
        died += 1
        assert held(into.url) == {}
    assert ended == 0
    assert died > 3
    other = empty_place("sqlite")
    restore(other.url, other.artifacts, backup)
    assert into.rows() == other.rows()
    assert_files_are_those_of_the_rows(into)

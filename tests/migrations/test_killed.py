"""A migration that is killed has changed nothing, and the next one does all of it."""

import os
import signal
from concurrent.futures import ThreadPoolExecutor

import pytest
from howsure_command import FORKS
from schema_rows import fill, go_to, held, revision
from sqlalchemy import Engine, event

from service.storage.schema import head, upgrade

FIRST = "0001"
KILLED = -signal.SIGKILL
# Before each statement that writes, with 1; there are some sixty, and each costs a process.
EVERY = int(os.environ.get("HOWSURE_KILL_EVERY", "5"))


@pytest.fixture
def url(empty_database_url):
    """A database in use of the first version of the service."""
    upgrade(empty_database_url)
    fill(empty_database_url)
    go_to(empty_database_url, FIRST)
    return empty_database_url


def upgrade_until(url, place, reached):
    """Migrate up to this writing statement, the commit being the last; die there, or wait."""
    said = 0

    def count(*_):
        nonlocal said
        said += 1
        if said == place and reached is None:
            os.kill(os.getpid(), signal.SIGKILL)
        if said == place:
            reached.set()
            signal.pause()

    def listen(connection, cursor, statement, *_):
        if not statement.lstrip().startswith(("SELECT", "PRAGMA")):
            count()

    event.listen(Engine, "before_cursor_execute", listen)
    event.listen(Engine, "commit", count)
    upgrade(url)


def begun(url, place, reached=None):
    process = FORKS.Process(target=upgrade_until, args=(url, place, reached), daemon=True)
    process.start()
    return process


def status(process):
    process.join(60)
    return process.exitcode


@pytest.mark.parametrize("every", [29, pytest.param(EVERY, marks=pytest.mark.slow)])
def test_a_kill_before_a_statement_changes_nothing_and_the_next_one_finishes(url, every):
    before = held(url)
    died = 0
    while (ended := status(begun(url, every * died + 1))) == KILLED:
        died += 1
        assert held(url) == before, died
    assert ended == 0
    assert died >= 50 // every
    assert revision(url) == head()
    go_to(url, FIRST)
    assert held(url) == before


def test_who_waits_for_a_migration_that_is_killed_does_all_of_it(url):
    before, reached = held(url), FORKS.Event()
    process = begun(url, 25, reached)
    assert reached.wait(60)
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(upgrade, url)
        with pytest.raises(TimeoutError):
            waiting.result(0.3)
        process.kill()
        waiting.result(60)
    assert revision(url) == head()
    go_to(url, FIRST)
    assert held(url) == before

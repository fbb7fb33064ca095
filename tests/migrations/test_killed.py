"""A migration that is killed has changed nothing, and the next one does all of it."""

import os
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest
from howsure_command import FORKS
from interrupted_writes import KILLED, begun, status, upgrade_until, upgrade_with_a_pause
from schema_rows import held, revision
from sqlalchemy import make_url
from stored_rows import submit_held_up

from service.storage.schema import head, upgrade

# Before each statement that writes, with 1; there are some forty or more, and each costs a process.
EVERY = int(os.environ.get("HOWSURE_KILL_EVERY", "10"))
pytestmark = pytest.mark.process


@pytest.fixture
def url(empty_database_url):
    return empty_database_url


def assert_upgraded(url):
    assert revision(url) == head()
    assert len(held(url)["tenant"]) == 1


@pytest.mark.slow
def test_a_kill_before_a_statement_changes_nothing_and_the_next_one_finishes(url):
    died = 0
    while (ended := status(begun(upgrade_until, EVERY * died + 1, url))) == KILLED:
        died += 1
        assert held(url) == {}, died
    assert ended == 0
    assert died >= 30 // EVERY
    assert_upgraded(url)


WAYS = [("sqlite", True), ("postgresql", False)]
WAYS += [pytest.param(one, not killed, marks=pytest.mark.slow) for one, killed in WAYS]


@pytest.mark.parametrize(("dialect", "is_killed"), WAYS)
def test_a_migration_waits_for_another_and_does_what_that_has_not_done(url, is_killed):
    reached, go_on = FORKS.Event(), FORKS.Event()
    process = begun(upgrade_with_a_pause, 25, url, reached, go_on)
    assert reached.wait(60)
    with ThreadPoolExecutor(1) as pool:
        second = submit_held_up(pool, partial(upgrade, url), make_url(url))
        if is_killed:
            process.kill()
        else:
            go_on.set()
        second.result(60)
    assert status(process) == (KILLED if is_killed else 0)
    assert_upgraded(url)

import os
import signal

import pytest
from runner_children import children, is_gone, wait_until

from service.errors import Overloaded
from service.runner.process import RunnerProcess, RunnerStartFailed
from service.runner.spawner import FIRST_BACK_OFF_SECONDS, Spawner


class Failing:
    """Starts children after a number of failures."""

    def __init__(self, failures):
        self.failures = failures
        self.attempts = 0

    def __call__(self):
        self.attempts += 1
        if self.attempts <= self.failures:
            raise RunnerStartFailed("no process")
        return RunnerProcess.start()


@pytest.fixture
def others():
    """Children that tests before this one have left to this process."""
    return set(children())


@pytest.fixture
def spawner(others):
    made = Spawner()
    yield made
    made.close()
    assert not set(children()) - others


def test_the_next_child_is_started_in_reserve(spawner, others):
    first = spawner.take()
    # A child is seen from outside a moment before the spawner has it.
    assert wait_until(lambda: spawner._spare is not None)
    (spare,) = set(children()) - others - {first.pid}
    second = spawner.take()
    assert second.pid == spare
    first.close()
    second.close()


@pytest.mark.parametrize("was_ready", [False, True])
def test_a_spare_that_was_lost_costs_nothing(spawner, was_ready):
    spawner.prepare()
    assert wait_until(lambda: spawner._spare is not None)
    if was_ready:
        spawner._spare.wait_ready(30)
    lost = spawner._spare.pid
    os.kill(lost, signal.SIGKILL)
    # Its first thread is gone before the others are, and its socket with the last of them.
    assert wait_until(lambda: not spawner._spare._channel.is_open())
    process = spawner.take()
    assert process.pid != lost
    process.close()


def test_children_die_with_the_spawner(spawner):
    process = spawner.take()
    spawner.close()
    assert wait_until(lambda: is_gone(process.pid))
    process.close()
    with pytest.raises(Overloaded, match="shutting down"):
        spawner.take()


def test_one_failure_is_tried_again_at_once():
    start = Failing(1)
    spawner = Spawner(start)
    spawner.take().close()
    spawner.close()


def test_after_two_failures_nothing_is_tried_for_a_while():
    start = Failing(4)
    now = 0.0
    spawner = Spawner(start, clock=lambda: now)
    for failures, wait in [(2, FIRST_BACK_OFF_SECONDS), (4, 2 * FIRST_BACK_OFF_SECONDS)]:
        for passed in (0.0, 0.5, 0.499):  # shares of the wait
            now += passed * wait
            with pytest.raises(Overloaded, match="does not start"):
                spawner.take()
            assert start.attempts == failures
        now += 0.001 * wait
    spawner.take().close()  # the fifth succeeds
    assert start.attempts >= 5
    spawner.close()


def test_a_child_that_is_not_ready_in_time_counts_as_a_failure(others):
    spawner = Spawner(start_timeout=0.001)
    with pytest.raises(Overloaded, match="does not start"):
        spawner.take()
    spawner.close()
    assert not set(children()) - others

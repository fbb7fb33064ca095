"""Runs are stopped at their deadline, and no others are."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import onnxruntime
import pytest
from runner_children import wait_until
from runner_models import endless_above, linear, rows, session_on

from service.child.onnx.session import CPU, bound_run, session_options
from service.child.onnx.watchdog import Watchdog
from service.errors import DeadlineExceeded, InvalidInput

LONG = 60.0
ROUNDING = 1e-6


class Clock:
    """Time that passes when a test says so."""

    now = 0.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def watchdog(clock):
    return Watchdog(clock)


@pytest.fixture
def endless(watchdog):
    """A session that runs for ever as soon as one value is above 1000."""
    return session_on("cpu", endless_above(1000.0), watchdog)


def run(session, x):
    return session.run(["y"], {"x": x}, place="inputs")["y"]


def run_for(seconds, session, x, clock, watchdog):
    """Let so much time pass while the session runs."""
    with ThreadPoolExecutor(1) as threads:
        running = threads.submit(run, session, x)
        assert wait_until(lambda: watchdog._is_running)
        clock.now += seconds + ROUNDING
        return running.result()


@pytest.mark.parametrize(("budget", "each"), [(0.2, None), (LONG, 0.2), (0, 0.2)])
def test_a_run_is_stopped_and_the_next_is_not(watchdog, clock, endless, budget, each):
    x = rows(3)
    expected = run(endless, x)
    for _ in range(2):
        with pytest.raises(DeadlineExceeded, match=r"0\.2 s"), watchdog.request(budget, each):
            run_for(0.2, endless, 2000 + x, clock, watchdog)
        with watchdog.request(LONG, LONG):
            assert (run(endless, x) == expected).all()


def test_each_run_has_its_own_time_and_all_have_one_together(watchdog, clock, endless):
    x = rows(3)
    with watchdog.request(LONG, 0.3):
        for _ in range(3):
            clock.now += 0.2
            run(endless, x)
        with pytest.raises(DeadlineExceeded, match=r"0\.3 s"):
            run_for(0.3, endless, 2000 + x, clock, watchdog)
        run(endless, x)
    with watchdog.request(0.4, 0.3):
        clock.now += 0.2
        run(endless, x)
        with pytest.raises(DeadlineExceeded, match=r"0\.4 s"):
            run_for(0.2, endless, 2000 + x, clock, watchdog)


def test_no_run_begins_after_the_deadline_of_its_request(watchdog, clock):
    with watchdog.request(0.01):
        watchdog.check()
        clock.now += 0.01 + ROUNDING
        with pytest.raises(DeadlineExceeded):
            watchdog.check()
        with pytest.raises(DeadlineExceeded):
            watchdog.begin()
    watchdog.begin()
    watchdog.end()


def test_a_late_stop_does_not_stop_a_later_run():
    watchdog = Watchdog()
    endless = session_on("cpu", endless_above(1000.0), watchdog)
    session, x = session_on("cpu", linear(), watchdog), rows(1)
    with watchdog.request(LONG, 0.05), pytest.raises(DeadlineExceeded):
        run(endless, rows(1) + 2000)
    for number in range(300):
        with suppress(DeadlineExceeded), watchdog.request(LONG, 1e-5 * (1 + number % 30)):
            for _ in range(20):
                run(session, x)
        with watchdog.request(LONG, LONG):
            for _ in range(3):
                run(session, x)


def test_another_failure_is_reported_as_such(watchdog, endless):
    with watchdog.request(LONG, LONG):
        with pytest.raises(InvalidInput, match="does not take these rows"):
            run(endless, rows(3)[:, :2])
        assert len(run(endless, rows(3))) == 3


def test_a_bound_run_is_stopped_as_well():
    watchdog = Watchdog()
    data = endless_above(1000.0).SerializeToString()
    session = onnxruntime.InferenceSession(data, session_options(1), providers=[CPU])
    x = rows(3)
    with watchdog.request(LONG, 0.2):
        options = watchdog.begin()
        with pytest.raises(Exception, match=r"[Tt]erminate"):
            bound_run(session, ["y"], {"x": 2000 + x}, options)
        watchdog.end()
    with watchdog.request(LONG, LONG):
        (answer,) = bound_run(session, ["y"], {"x": x}, watchdog.begin())
        watchdog.end()
    assert (answer == session.run(["y"], {"x": x})[0]).all()

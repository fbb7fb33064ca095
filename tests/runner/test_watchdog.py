"""Runs are stopped at their deadline, and no others are."""

import time
from contextlib import suppress

import onnxruntime
import pytest
from runner_models import endless_above, linear, rows

from service.errors import DeadlineExceeded, InvalidInput
from service.runner.child.bound_run import bound_run
from service.runner.child.onnx_session import CPU, OnnxSession, session_options
from service.runner.child.watchdog import Watchdog

LONG = 60.0


def load(model, watchdog):
    data = model.SerializeToString()
    return OnnxSession(data, weights={}, device="cpu", threads=1, watchdog=watchdog)


@pytest.fixture
def watchdog():
    return Watchdog()


@pytest.fixture
def endless(watchdog):
    """A session that runs for ever as soon as one value is above 1000."""
    return load(endless_above(1000.0), watchdog)


def run(session, x):
    return session.run(["y"], {"x": x}, place="inputs")["y"]


def run_for(seconds, session, x):
    begin = time.monotonic()
    while time.monotonic() - begin < seconds:
        run(session, x)


@pytest.mark.parametrize(("budget", "each"), [(0.2, None), (0.2, LONG), (LONG, 0.2), (0, 0.2)])
def test_a_run_is_stopped_and_the_next_is_not(watchdog, endless, budget, each):
    x = rows(3)
    expected = run(endless, x)
    for _ in range(3):
        begin = time.monotonic()
        with pytest.raises(DeadlineExceeded, match=r"0\.2 s"), watchdog.request(budget, each):
            run(endless, 2000 + x)
        assert 0.2 <= time.monotonic() - begin < LONG / 2
        with watchdog.request(LONG, LONG):
            assert (run(endless, x) == expected).all()


def test_each_run_has_its_own_time_and_all_have_one_together(watchdog, endless):
    x = rows(3)
    with watchdog.request(LONG, 0.3):
        run_for(0.6, endless, x)
        with pytest.raises(DeadlineExceeded, match=r"0\.3 s"):
            run(endless, 2000 + x)
        run(endless, x)
    with pytest.raises(DeadlineExceeded, match=r"0\.4 s"), watchdog.request(0.4, 0.3):
        run_for(LONG, endless, x)


def test_no_run_begins_after_the_request_s_time(watchdog):
    with watchdog.request(0.01):
        while True:
            try:
                watchdog.check()
            except DeadlineExceeded:
                break
        with pytest.raises(DeadlineExceeded):
            watchdog.begin()
    watchdog.begin()
    watchdog.end()


def test_a_flag_that_comes_late_stops_no_later_run(watchdog, endless):
    session, x = load(linear(), watchdog), rows(1)
    with watchdog.request(LONG, 0.05), pytest.raises(DeadlineExceeded):
        run(endless, rows(1) + 2000)
    for number in range(300):
        with suppress(DeadlineExceeded), watchdog.request(LONG, 1e-5 * (1 + number % 30)):
            for _ in range(20):
                run(session, x)
        with watchdog.request(LONG, LONG):
            for _ in range(3):
                run(session, x)


def test_another_failure_is_told_as_such_and_the_next_run_goes_on(watchdog, endless):
    with watchdog.request(LONG, LONG):
        with pytest.raises(InvalidInput, match="does not take these rows"):
            run(endless, rows(3)[:, :2])
        assert len(run(endless, rows(3))) == 3


def test_a_bound_run_is_stopped_as_well(watchdog):
    data = endless_above(1000.0).SerializeToString()
    session = onnxruntime.InferenceSession(data, session_options(1), providers=[CPU])
    x = rows(3)
    with watchdog.request(LONG, 0.2):
        options = watchdog.begin()
        with pytest.raises(Exception, match=r"[Tt]erminate"):
            bound_run(session, ["y"], {"x": 2000 + x}, options)
        watchdog.end()
        (answer,) = bound_run(session, ["y"], {"x": x}, watchdog.begin())
        watchdog.end()
    assert (answer == session.run(["y"], {"x": x})[0]).all()

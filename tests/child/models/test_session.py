"""A session runs on the requested device, within its time, or says why it does not."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import onnxruntime
import pytest
from forked_children import SERVER
from runner_children import wait_until
from runner_models import endless_above, linear, rows, session_on

from service.child.onnx.session import CPU, bound_run, session_options
from service.child.onnx.watchdog import Watchdog
from service.child.serve import FIRST_KINDS, USED, Requests
from service.errors import DeadlineExceeded, InferenceFailed, InvalidInput
from service.runner.messages.convert import FieldError
from service.runner.messages.frames import Frame, Kind
from service.runner.pool import RunnerPool

LONG = 60.0
ROUNDING = 1e-6
X = rows(3)


@pytest.mark.process
def test_an_unusable_gpu_is_not_replaced_by_the_cpu(capfd):
    with RunnerPool(device="auto", start_child=SERVER.start_child) as pool:
        device = pool.device()
    if device.name != "cpu":
        pytest.skip("CUDA works here")
    assert device.provider == CPU
    assert "CUDA" in device.reason
    with pytest.raises(InferenceFailed, match="cuda:0"):
        session_on("cuda:0", linear())


@pytest.mark.parametrize("kind", FIRST_KINDS)
def test_a_child_that_was_used_takes_no_other_upload(kind):
    requests = Requests(send=None)
    with pytest.raises(FieldError):  # it names no sets
        requests.answer(Frame(Kind.READ, 0, {}, {}, budget_ms=60_000))
    with pytest.raises(InferenceFailed, match=USED):
        requests.answer(Frame(kind, 1, {}, {}, budget_ms=60_000))


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


def run_for(seconds, session, clock, watchdog):
    """Let so much time pass while the session runs for ever."""
    with ThreadPoolExecutor(1) as threads:
        running = threads.submit(run, session, 2000 + X)
        assert wait_until(lambda: watchdog._is_running)
        clock.now += seconds + ROUNDING
        return running.result()


def test_each_run_has_its_own_time_and_all_have_one_together(watchdog, clock, endless):
    with watchdog.request(LONG, 0.3):
        for _ in range(3):
            clock.now += 0.2
            run(endless, X)
        with pytest.raises(DeadlineExceeded, match=r"0\.3 s"):
            run_for(0.3, endless, clock, watchdog)
        with pytest.raises(InvalidInput):  # another failure is reported as such
            run(endless, X[:, :2])
        run(endless, X)
    for each in (0.3, None):
        with watchdog.request(0.4, each):
            clock.now += 0.2
            run(endless, X)
            with pytest.raises(DeadlineExceeded, match=r"0\.4 s"):
                run_for(0.2, endless, clock, watchdog)


def test_no_run_begins_after_the_deadline_of_its_request(watchdog, clock):
    with watchdog.request(0.01):
        watchdog.check()
        clock.now += 0.01 + ROUNDING
        for late in (watchdog.check, watchdog.begin):
            with pytest.raises(DeadlineExceeded):
                late()
    watchdog.begin()
    watchdog.end()


def test_a_late_stop_does_not_stop_a_later_run():
    watchdog = Watchdog()
    session = session_on("cpu", linear(), watchdog)
    for number in range(300):
        with suppress(DeadlineExceeded), watchdog.request(LONG, 1e-5 * (1 + number % 30)):
            for _ in range(20):
                run(session, X)
        with watchdog.request(LONG, LONG):
            for _ in range(3):
                run(session, X)


def test_a_bound_run_is_stopped_as_well():
    watchdog = Watchdog()
    data = endless_above(1000.0).SerializeToString()
    session = onnxruntime.InferenceSession(data, session_options(1), providers=[CPU])
    with watchdog.request(LONG, 0.2):
        options = watchdog.begin()
        with pytest.raises(Exception, match=r"[Tt]erminate"):
            bound_run(session, ["y"], {"x": 2000 + X}, options)
        watchdog.end()
    with watchdog.request(LONG, LONG):
        (answer,) = bound_run(session, ["y"], {"x": X}, watchdog.begin())
        watchdog.end()
    assert (answer == session.run(["y"], {"x": X})[0]).all()

"""Child processes: how they start, what they hold, how they answer and end, and the spare one."""

import os
import resource
import signal
import subprocess
import time
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from forked_children import SERVER
from own_process import run_apart
from runner_children import children, is_gone, wait_until
from scripted_child import start_scripted

from service.errors import DeadlineExceeded, OnnxModelCrashed, Overloaded
from service.runner.child_requests import ChildRequest, ask
from service.runner.messages.frames import FrameError, Kind, Status
from service.runner.process import CpuTimeLimit, RunnerProcess, RunnerStartFailed
from service.runner.spawner import FIRST_BACK_OFF_SECONDS, Spawner

pytestmark = pytest.mark.process


@contextmanager
def ready(process):
    try:
        process.wait_ready(60)
        yield process
    finally:
        process.close()


def predict(process, x=np.zeros((1, 1)), *, timeout=10):  # noqa: B008 - it is not changed
    """Send a request to a child without a model, which answers that it failed."""
    fields = {"location": "inputs", "start": 0, "each_run": 9.0}
    return process.call(Kind.PREDICT, fields, {"x": x}, timeout=timeout)


def test_a_child_reports_its_versions_and_answers_one_request_after_the_other():
    with ready(RunnerProcess.start()) as process:
        assert process.wait_ready(1)["versions"].keys() == {"numpy", "onnx", "onnxruntime"}
        for _ in range(3):
            assert predict(process).status is Status.FAILED
        assert limit(process.pid) != resource.RLIM_INFINITY
        with pytest.raises(FrameError):  # a request that is too large is not sent
            predict(process, np.broadcast_to(0.0, 2**30))
        assert predict(process).status is Status.FAILED


def surroundings(start_child):
    """Start a child and return what the kernel says of it."""
    with closing(start_child()) as child:
        child.wait_ready(60)
        folder = Path(f"/proc/{child.pid}")
        session = (folder / "stat").read_text().rpartition(")")[2].split()[1:4]
        opened = [path.readlink().name.split(":")[0] for path in (folder / "fd").iterdir()]
        return {
            "parent, group, session": ["own" if n == str(child.pid) else n for n in session],
            "open files": sorted(opened),
            "standard input": (folder / "fd" / "0").readlink(),
            "its folder is gone": (folder / "cwd").readlink().name.endswith("(deleted)"),
            "ended first without memory": (folder / "oom_score_adj").read_text(),
            "threads": len(list((folder / "task").iterdir())),
            "a child of this process": child.pid in children(),
            "settings": b"HOWSURE" in (folder / "environ").read_bytes(),
        }


def test_a_child_s_surroundings_are_empty_and_a_fork_has_the_same(monkeypatch):
    monkeypatch.setenv("HOWSURE_SECRET", "hush")
    real = surroundings(RunnerProcess.start)
    assert not real["settings"]
    assert real["its folder is gone"]
    assert real["standard input"] == Path("/dev/null")
    assert real["open files"].count("socket") == 1
    assert surroundings(SERVER.start_child) == real


# Lies are told about fits: see `test_fitter`.
WRONG_ANSWERS = [("close the socket when asked", 10.0, OnnxModelCrashed, "closed its socket")]
SILENT = ("never answer", "half an answer")
WRONG_ANSWERS += [(script, 0.3, DeadlineExceeded, r"0\.3 s") for script in SILENT]


@pytest.mark.parametrize(("script", "timeout", "error", "words"), WRONG_ANSWERS)
def test_a_child_that_does_not_answer_a_request_is_killed(script, timeout, error, words):
    request = ChildRequest(Kind.PREDICT, {}, lambda answer: answer, timeout, {})
    with ready(start_scripted(script)) as process:
        with pytest.raises(error, match=words):
            ask(process, request)
        assert wait_until(lambda: is_gone(process.pid))


WRONG_STARTS = [
    ("never ready", 0.5, "not ready"),
    ("ready with nonsense", 30, "message is invalid"),
]
WRONG_STARTS += [("another word first", 30, "not READY"), ("die at start", 30, "exit status 3")]


@pytest.mark.parametrize(("script", "timeout", "reason"), WRONG_STARTS)
def test_a_child_that_does_not_start_is_given_up(script, timeout, reason):
    with closing(start_scripted(script)) as process:
        with pytest.raises(RunnerStartFailed, match=reason):
            process.wait_ready(timeout)
        assert not process.is_alive()


def limit(pid):
    return resource.prlimit(pid, resource.RLIMIT_CPU)[0]


def test_the_kernel_ends_a_process_whose_time_is_not_extended():
    with subprocess.Popen(["sh", "-c", "while :; do :; done"]) as spinning:
        CpuTimeLimit(spinning.pid, renewed_seconds=0).extend(0.1)
        assert spinning.wait(60) == -signal.SIGXCPU


def test_the_limit_is_added_to_the_used_time():
    """Of this process, which has usually computed for more than a second already."""
    pid, before = os.getpid(), resource.getrlimit(resource.RLIMIT_CPU)
    while (used := time.process_time()) <= 1:
        pass
    try:
        CpuTimeLimit(pid, renewed_seconds=0).extend(3600)
        assert limit(pid) >= used + 3600 * os.cpu_count()
    finally:
        resource.setrlimit(resource.RLIMIT_CPU, before)


class Starts:
    """Starts children after a number of failures."""

    def __init__(self, failures=0, start=SERVER.start_child):
        self.failures, self.start = failures, start
        self.attempts, self.children = 0, []

    def __call__(self):
        self.attempts += 1
        if self.attempts <= self.failures:
            raise RunnerStartFailed("no process")
        self.children.append(self.start())
        return self.children[-1]


@pytest.fixture
def starts():
    made = Starts()
    yield made
    for child in made.children:
        child.close()


@pytest.fixture
def spawner(starts):
    with closing(Spawner(starts)) as made:
        yield made


def test_the_next_child_is_started_in_reserve(spawner, starts):
    starts.failures = 1  # one failure is tried again at once
    first = spawner.take()
    assert wait_until(lambda: spawner._spare is not None)
    assert spawner.take() is starts.children[1] is not first


@pytest.mark.parametrize("was_ready", [False, True])
def test_a_spare_child_that_died_is_replaced(spawner, starts, was_ready):
    if not was_ready:
        starts.start = partial(start_scripted, "die at start")
    spawner.prepare()
    assert wait_until(lambda: spawner._spare is not None)
    lost, starts.start = spawner._spare, SERVER.start_child
    if was_ready:
        lost.wait_ready(30)
        os.kill(lost.pid, signal.SIGKILL)
    # Its first thread is gone before the others are, and its socket with the last of them.
    assert wait_until(lambda: not lost._channel.is_open())
    assert spawner.take() is not lost


def test_after_two_failures_nothing_is_tried_for_a_while():
    starts, now = Starts(4), 0.0
    spawner = Spawner(starts, clock=lambda: now)
    for failures, wait in [(2, FIRST_BACK_OFF_SECONDS), (4, 2 * FIRST_BACK_OFF_SECONDS)]:
        for passed in (0.0, 0.5, 0.499):  # shares of the wait
            now += passed * wait
            with pytest.raises(Overloaded):
                spawner.take()
            assert starts.attempts == failures
        now += 0.001 * wait
    spawner.take().close()  # the fifth succeeds
    spawner.close()


def test_a_spare_child_is_taken_although_no_other_starts(spawner, starts):
    starts.failures = 2
    with pytest.raises(Overloaded):
        spawner.take()
    spawner.prepare()
    assert wait_until(lambda: spawner._spare is not None)
    assert spawner.take() is starts.children[0]


def test_a_child_that_is_not_ready_in_time_counts_as_a_failure():
    starts = Starts(start=lambda: start_scripted("never ready"))
    with closing(Spawner(starts, start_timeout=0.01)) as spawner, pytest.raises(Overloaded):
        spawner.take()
    assert len(starts.children) == 2
    assert all(is_gone(child.pid) for child in starts.children)


AFTER_MAIN = """
import threading
from service.runner.spawner import LongLivedThread

thread = LongLivedThread("t")
thread.submit(int).result()

def later():
    threading.main_thread().join()
    print(thread.submit(lambda: "alive").result(), flush=True)

threading.Thread(target=later).start()
"""


def test_the_thread_of_the_spawner_outlives_the_main_thread(tmp_path):
    assert run_apart(AFTER_MAIN, folder=tmp_path) == "alive\n"

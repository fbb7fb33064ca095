import os
import signal
import socket
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import lying_child
import numpy as np
import pytest
from own_process import run_apart
from runner_children import children, is_gone, wait_until

import service
from service.errors import DeadlineExceeded, OnnxModelCrashed
from service.runner.child_requests import ChildRequest, ask
from service.runner.messages.channel import Channel
from service.runner.messages.convert import FieldError
from service.runner.messages.frames import FrameError, Kind, Status
from service.runner.process import RunnerProcess, RunnerStartFailed


@contextmanager
def real_child():
    process = RunnerProcess.start()
    try:
        process.wait_ready(60)
        yield process
    finally:
        process.close()


@contextmanager
def lying(how):
    ours, theirs = socket.socketpair()
    with theirs:
        command = [sys.executable, "-P", lying_child.__file__, str(theirs.fileno()), how]
        root = Path(service.__file__).parent.parent
        popen = subprocess.Popen(
            command,
            pass_fds=[theirs.fileno()],
            env={"PYTHONPATH": str(root)},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    process = RunnerProcess(popen, Channel(ours))
    try:
        yield process
    finally:
        process.close()
        assert popen.returncode is not None


def unloaded(process, **options):
    """Ask a child that has no model: it answers with a failure, and lives."""
    return process.call(
        Kind.PREDICT,
        {"location": "inputs", "start": 0, "each_run": 9.0},
        {"x": np.zeros((1, 1))},
        **options,
    )


def test_a_child_says_what_it_runs():
    with real_child() as process:
        assert process.wait_ready(1)["versions"].keys() == {"numpy", "onnx", "onnxruntime"}


def test_a_child_answers_one_question_after_the_other():
    with real_child() as process:
        for _ in range(3):
            assert unloaded(process, timeout=10).status is Status.FAILED


def test_a_child_s_surroundings_are_empty(monkeypatch):
    monkeypatch.setenv("HOWSURE_SECRET", "hush")
    with real_child() as process:
        folder = Path(f"/proc/{process.pid}")
        environment = (folder / "environ").read_bytes()
        assert b"hush" not in environment
        assert b"HOWSURE" not in environment
        assert str((folder / "cwd").readlink()).endswith("(deleted)")
        # Its socket, its standard streams, and what Python or ONNX Runtime opens for itself.
        held = [str(file.readlink()) for file in (folder / "fd").iterdir()]
        assert sum(link.startswith("socket:") for link in held) == 1
        assert (folder / "fd" / "0").readlink() == Path("/dev/null")


NOTHING_LEFT = """
from runner_children import children, descriptors, folders
from service.runner.process import RunnerProcess

for _ in range(2):  # the first use also opens what stays
    before = descriptors()
    process = RunnerProcess.start()
    process.wait_ready(600)
    assert children() == [process.pid]
    assert not folders()
    process.close()
assert (children(), descriptors()) == ([], before)
"""


def test_nothing_is_left_of_a_closed_child(tmp_path):
    run_apart(NOTHING_LEFT, folder=tmp_path)


def test_closing_twice_and_killing_after_it_do_no_harm():
    process = RunnerProcess.start()
    process.close()
    process.close()
    process.kill()


def test_a_killed_child_is_reaped_and_named():
    with real_child() as process:
        os.kill(process.pid, signal.SIGKILL)
        assert wait_until(lambda: process.pid not in children())
        assert wait_until(lambda: not process.is_alive())
        with pytest.raises(OnnxModelCrashed, match="SIGKILL"):
            unloaded(process, timeout=5)


@pytest.mark.parametrize("number", [signal.SIGSEGV, signal.SIGABRT, signal.SIGFPE])
def test_the_signal_that_ended_a_child_is_in_the_message(number):
    with real_child() as process:
        os.kill(process.pid, number)
        with pytest.raises(OnnxModelCrashed, match=number.name):
            unloaded(process, timeout=5)


def test_a_stopped_child_is_killed_after_its_time():
    with real_child() as process:
        os.kill(process.pid, signal.SIGSTOP)
        with pytest.raises(DeadlineExceeded):
            unloaded(process, timeout=0.2)
        assert wait_until(lambda: is_gone(process.pid))


def test_a_request_too_large_harms_nobody():
    with real_child() as process:
        with pytest.raises(FrameError):
            process.call(Kind.PREDICT, {}, {"x": np.broadcast_to(0.0, 2**30)}, timeout=5)
        assert unloaded(process, timeout=10).status is Status.FAILED


@pytest.mark.parametrize(
    "how",
    [
        "another sequence",
        "another kind",
        "garbage",
        "enormous",
        "verbose",
        "a failure with arrays",
    ],
)
def test_a_child_that_answers_nonsense_is_killed(how):
    with lying(how) as process:
        process.wait_ready(30)
        with pytest.raises(OnnxModelCrashed, match="invalid response"):
            unloaded(process, timeout=10, max_tensor_bytes=1000)
        assert wait_until(lambda: is_gone(process.pid))
        assert not process.is_alive()


@pytest.mark.parametrize("how", ["an unknown failure", "no text"])
def test_a_child_that_reports_an_impossible_failure_is_killed(how):
    request = ChildRequest(Kind.PREDICT, {}, lambda answer: answer, 10.0, {})
    with lying(how) as process:
        process.wait_ready(30)
        with pytest.raises(OnnxModelCrashed, match="invalid response"):
            ask(process, request)
        assert not process.is_alive()


@pytest.mark.parametrize("how", ["silence", "half a frame"])
def test_a_child_that_does_not_finish_its_answer_is_killed(how):
    with lying(how) as process:
        process.wait_ready(30)
        with pytest.raises(DeadlineExceeded, match=r"0\.3 s"):
            unloaded(process, timeout=0.3)
        assert wait_until(lambda: is_gone(process.pid))


def test_a_child_that_closes_its_socket_is_killed():
    with lying("closes its socket") as process:
        process.wait_ready(30)
        with pytest.raises(OnnxModelCrashed):
            unloaded(process, timeout=10)
        assert wait_until(lambda: is_gone(process.pid))


@pytest.mark.parametrize(
    ("how", "timeout", "reason"),
    [
        ("never ready", 0.5, "not ready"),
        ("ready with nonsense", 30, "message is invalid"),
        ("first another word", 30, "not READY"),
        ("dies at start", 30, "exit status 3"),
    ],
)
def test_a_child_that_does_not_come_up_is_given_up(how, timeout, reason):
    with lying(how) as process:
        with pytest.raises(RunnerStartFailed, match=reason):
            process.wait_ready(timeout)
        assert not process.is_alive()


def test_an_answer_the_reader_refuses_costs_the_child_its_life():
    def refuse(_):
        raise FieldError("not this")

    with real_child() as process:
        request = ChildRequest(Kind.PROBE, {"device": "cuda:0"}, refuse, 60.0, {})
        with pytest.raises(OnnxModelCrashed, match="invalid response"):
            ask(process, request)
        assert not process.is_alive()

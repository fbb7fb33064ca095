"""The service ends on a signal, whatever the kernel allows its user."""

import json
import os
import re
import signal
import subprocess
import sys
from contextlib import contextmanager

import httpx
import pytest
import without_socket_filters


@contextmanager
def started(command, folder, line, **settings):
    """Start a command and wait until it prints the line; yield it with its output so far."""
    settings |= {"DEVICE": "cpu", "PORT": "0", "WORKER_PORT": "0", "DATA_DIR": str(folder)}
    variables = {f"HOWSURE_{name}": value for name, value in settings.items()}
    with subprocess.Popen(
        [sys.executable, *command],
        env=os.environ | variables | {"PYTHONUNBUFFERED": "1"},
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        try:
            log = ""
            while line not in log:
                printed = process.stdout.readline()
                assert printed, f"it did not start: {log}"
                log += printed
            yield process, log
        finally:
            process.kill()


@pytest.fixture(autouse=True)
def interrupts(unchanged_process):
    """Undo what a shell does to background jobs: they ignore Ctrl-C, and so do their children."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.mark.process
def test_a_signal_ends_a_service_with_status_0_and_all_of_its_log_is_json(tmp_path) -> None:
    """Also where the kernel refuses socket filters to this user, and the signal comes twice."""
    command = [without_socket_filters.__file__, "serve"]
    with started(command, tmp_path, '"answering"', LOG_FORMAT="json") as (process, log):
        with httpx.Client(base_url=json.loads(log.splitlines()[-1])["address"]) as client:
            form = {"Content-Type": "multipart/form-data; boundary=x"}
            answer = client.post("/calibrate", content=b"--x\r\nnonsense", headers=form)
            assert answer.status_code == httpx.codes.BAD_REQUEST
        for _ in range(2):
            process.send_signal(signal.SIGINT)
        rest = process.communicate()[0]
    lines = [json.loads(line) for line in (log + rest).splitlines()]
    assert all({"event", "level", "logger", "timestamp"} <= set(line) for line in lines)
    assert (lines[-1]["event"], process.returncode) == ("stopped", 0)


@pytest.mark.slow
def test_the_demo_answers_until_a_signal(tmp_path) -> None:
    with started(["-m", "service", "demo", "--stay"], tmp_path, "Press Ctrl-C") as (process, log):
        process.send_signal(signal.SIGINT)
        rest = process.communicate()[0]
    assert "digits@1" in log
    assert re.search(r"row 0: class \d, correct with probability 0\.\d+", log)
    assert rest.splitlines()[-1] == "The demo has stopped."
    assert process.returncode == 0


# Python drops exceptions in callbacks of weak references, marks exceptions that leave `exec`, and
# runs finalizers at the end of the process.
SIGNALS = """
import os, signal, sys, time, weakref
from service.cli.stopping import until_stopped
class Thing:
    def __del__(self):
        kill(pid, 2)
kill, pid = os.kill, os.getpid()
with until_stopped():
    held = type("Held", (), {})()
    ref = weakref.ref(held, lambda _: kill(pid, signal.SIGINT) or time.sleep(0.2))
    del held
    time.sleep(20)
    print("not stopped")
with until_stopped():
    exec("kill(pid, signal.SIGINT); time.sleep(20)")
    print("not stopped")
with until_stopped():
    signal.signal(signal.SIGINT, lambda *_: None)
thing = Thing()
print("stopped")
"""


@pytest.mark.process
def test_a_signal_is_neither_lost_nor_told_as_an_error() -> None:
    done = subprocess.run(
        [sys.executable, "-c", SIGNALS], capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.stdout, done.stderr, done.returncode) == ("stopped\n", "", 0)

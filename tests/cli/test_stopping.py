"""The service ends on a signal, whatever the kernel allows its user."""

import os
import signal
import socket
import subprocess
import sys
from contextlib import contextmanager

import pytest
import without_socket_filters

from service.cli.server import accept_last

AS_THIS_USER = ["-m", "service"]
WITHOUT_SOCKET_FILTERS = [without_socket_filters.__file__]


@contextmanager
def started(command, folder, line):
    """Start a command and wait until it prints the line; yield it with its output so far."""
    settings = {"HOWSURE_DEVICE": "cpu", "HOWSURE_PORT": "0", "HOWSURE_WORKER_PORT": "0"}
    settings |= {"HOWSURE_DATA_DIR": str(folder), "PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(
        [sys.executable, *command],
        env=os.environ | settings,
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


# What a command prints last before it serves, and how many signals it gets.
STOPS = [
    pytest.param(WITHOUT_SOCKET_FILTERS, "serve", "  data ", signal.SIGINT, 2, id="serve"),
    pytest.param(AS_THIS_USER, "worker", "  data ", signal.SIGTERM, 2, id="worker",
                 marks=pytest.mark.slow),
    pytest.param(AS_THIS_USER, "demo --stay", "Press Ctrl-C", signal.SIGINT, 1, id="demo",
                 marks=pytest.mark.slow),
    pytest.param(AS_THIS_USER, "serve", "  data ", signal.SIGTERM, 1, id="serve, with filters",
                 marks=pytest.mark.slow),
]  # fmt: skip


@pytest.mark.process
@pytest.mark.parametrize(("command", "words", "line", "number", "times"), STOPS)
def test_a_signal_ends_a_command_with_status_0(
    tmp_path, command, words, line, number, times
) -> None:
    with started([*command, *words.split()], tmp_path, line) as (process, log):
        for _ in range(times):
            process.send_signal(number)
        rest = process.communicate()[0]
    assert "Traceback" not in log + rest
    assert rest.splitlines()[-1].rstrip(".").endswith("has stopped"), log + rest
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


@pytest.mark.parametrize("n_waiting", [0, 3])
def test_connections_that_wait_are_accepted_and_later_ones_refused(n_waiting) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        address = listener.getsockname()
        waiting = [socket.create_connection(address) for _ in range(n_waiting)]
        accepted = accept_last(listener)
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(address)
    assert {one.getpeername() for one in accepted} == {one.getsockname() for one in waiting}
    for one in (*waiting, *accepted):
        one.close()

"""The service ends when it is told to, whatever the kernel allows its user."""

import os
import signal
import socket
import subprocess
import sys
from contextlib import contextmanager
from itertools import product

import pytest
import without_socket_filters

from service.cli.server import accept_last

COMMANDS = {
    "as this user": ["-m", "service"],
    "without socket filters": [without_socket_filters.__file__],
}
# What a command prints when it serves, and the commands.
LAST_LINE = {"serve": "  data ", "worker": "  data ", "demo": "Press Ctrl-C"}
WORDS = (("serve",), ("serve", "--processes", "2"), ("worker",), ("demo", "--stay"))
SHORT = {
    "serve, as this user, SIGTERM x 1",
    "serve, without socket filters, SIGINT x 2",
    "worker, as this user, SIGTERM x 2",
}


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


def stops():
    """Yield words, command, signal and number of signals; all that are not in `SHORT` are slow."""
    numbers = (signal.SIGINT, signal.SIGTERM)
    for words, command, number, times in product(WORDS, COMMANDS, numbers, (1, 2)):
        name = f"{' '.join(words)}, {command}, {number.name} x {times}"
        marks = () if name in SHORT else pytest.mark.slow
        yield pytest.param(words, command, number, times, id=name, marks=marks)


@pytest.mark.process
@pytest.mark.parametrize(("words", "command", "number", "times"), list(stops()))
def test_a_signal_ends_a_command_with_status_0(tmp_path, words, command, number, times) -> None:
    with started([*COMMANDS[command], *words], tmp_path, LAST_LINE[words[0]]) as (process, log):
        for _ in range(times):
            process.send_signal(number)
        rest = process.communicate()[0]
    assert "Traceback" not in log + rest
    assert rest.splitlines()[-1].rstrip(".").endswith("has stopped"), log + rest
    assert process.returncode == 0


# Python drops exceptions in callbacks of weak references, and marks exceptions that leave `exec`.
LOST_ONCE = """
import os, signal, sys, time, weakref
from service.cli.stopping import until_stopped
class Thing: pass
with until_stopped():
    thing = Thing()
    ref = weakref.ref(thing, lambda _: os.kill(os.getpid(), signal.SIGINT) or time.sleep(0.2))
    del thing
    time.sleep(20)
    print("not stopped")
print("stopped")
"""
THROUGH_EXEC = """
import os, signal, time
from service.cli.stopping import until_stopped
with until_stopped():
    exec("os.kill(os.getpid(), signal.SIGINT); time.sleep(20)")
print("stopped")
"""
AT_THE_END = """
import os, signal, time
from service.cli.stopping import until_stopped
class Late:
    def __del__(self):
        kill(pid, 2)
kill, pid = os.kill, os.getpid()
with until_stopped():
    signal.signal(signal.SIGINT, lambda *_: None)
late = Late()
print("stopped")
"""


@pytest.mark.process
@pytest.mark.parametrize("script", [LOST_ONCE, THROUGH_EXEC, AT_THE_END])
def test_a_signal_is_neither_lost_nor_told_as_an_error(script) -> None:
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=False
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
    assert sorted(one.getpeername() for one in accepted) == sorted(
        one.getsockname() for one in waiting
    )
    for one in (*waiting, *accepted):
        one.close()

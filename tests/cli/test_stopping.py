"""The service ends when it is told to, whatever the kernel allows its user."""

import os
import re
import signal
import socket
import subprocess
import sys

import httpx
import pytest
import without_socket_filters

from service.cli.server import accept_last

# Click turns Ctrl-C into exit status 130.
ENDINGS = {signal.SIGINT: 130, signal.SIGTERM: -signal.SIGTERM}
COMMANDS = {
    "as this user": ["-m", "service"],
    "without socket filters": [without_socket_filters.__file__],
}


@pytest.fixture(autouse=True)
def interrupts():
    """Undo what a shell does to background jobs: they ignore Ctrl-C, and so do their children."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize("number", ENDINGS, ids=lambda number: number.name)
@pytest.mark.parametrize("command", COMMANDS)
def test_a_signal_ends_the_service_without_a_traceback(tmp_path, command, number) -> None:
    settings = {"HOWSURE_DATA_DIR": str(tmp_path), "HOWSURE_DEVICE": "cpu", "HOWSURE_PORT": "0"}
    log = ""
    with subprocess.Popen(
        [sys.executable, *COMMANDS[command], "serve"],
        env=os.environ | settings,
        cwd=tmp_path,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            while not (address := re.search(r"http://[\d.]+:\d+", log)):
                line = process.stderr.readline()
                assert line, f"the service did not start: {log}"
                log += line
            with httpx.Client(base_url=address[0], timeout=60) as client:
                assert client.get("/healthz").status_code == httpx.codes.OK
                process.send_signal(number)
                log += process.stderr.read()
        finally:
            process.kill()
    assert "Traceback" not in log
    assert process.returncode == ENDINGS[number], log


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

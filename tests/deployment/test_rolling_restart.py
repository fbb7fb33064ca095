"""Two APIs behind HAProxy restart one after the other, and no request is lost."""

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Self

import httpx
import pytest
from running_service import DIGITS

import howsure

CONFIGURATION = Path(__file__).parents[2] / "docker" / "haproxy.cfg"
N_CLIENTS = 4
PAUSE_SECONDS = 0.015


class Api:
    """A process of `howsure serve` that starts again on its port."""

    def __init__(self, folder: Path, *words: str) -> None:
        self.port = free_port()
        self._command = [sys.executable, "-m", "service", "serve", *words]
        self._settings = os.environ | {
            "HOWSURE_DATA_DIR": str(folder),
            "HOWSURE_DEVICE": "cpu",
            "HOWSURE_PORT": str(self.port),
            "HOWSURE_DRAIN_SECONDS": "2",
        }
        self.log = folder.with_name(f"{self.port}.log").open("w")
        self.start()

    def start(self) -> None:
        self.process = subprocess.Popen(
            self._command, env=self._settings, stdout=self.log, stderr=subprocess.STDOUT
        )
        wait_until_ready(self.port)

    def stop(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(60)


class Load:
    """Clients that send prediction after prediction over connections that stay open."""

    def __init__(self, port: int, expected: object) -> None:
        self.url, self.expected = f"http://127.0.0.1:{port}/predict", expected
        self.body = (DIGITS / "request.json").read_bytes()
        self.failures, self.waits = [], []
        self.stopping = threading.Event()
        self.threads = [threading.Thread(target=self.run) for _ in range(N_CLIENTS)]

    def run(self) -> None:
        with httpx.Client(timeout=30, headers={"Content-Type": "application/json"}) as client:
            while not self.stopping.wait(PAUSE_SECONDS):
                began = time.monotonic()
                try:
                    answer = client.post(self.url, content=self.body)
                    if answer.status_code != 200 or probabilities(answer) != self.expected:
                        self.failures.append(answer.text)
                except httpx.TransportError as error:
                    self.failures.append(repr(error))
                self.waits.append(time.monotonic() - began)

    def __enter__(self) -> Self:
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stopping.set()
        for thread in self.threads:
            thread.join()


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def wait_until_ready(port: int, *, n_times: int = 1) -> None:
    """Wait until /readyz has answered 200 so many times in a row."""
    until = time.monotonic() + 120
    found = 0
    while found < n_times:
        assert time.monotonic() < until
        try:
            ready = httpx.get(f"http://127.0.0.1:{port}/readyz", timeout=5).is_success
        except httpx.TransportError:
            ready = False
        found = found + 1 if ready else 0
        time.sleep(0.05)


def wait_for_text(log: Path, text: str, *, n_times: int) -> None:
    until = time.monotonic() + 60
    while log.read_text().count(text) < n_times:
        assert time.monotonic() < until, log.read_text()
        time.sleep(0.05)


def probabilities(answer: httpx.Response) -> object:
    return [row["top1"]["probability"] for row in json.loads(answer.content)["predictions"]]


def start_proxy(folder: Path, ports: list[int]) -> tuple[subprocess.Popen, int]:
    """Start HAProxy with the committed configuration and the addresses of this test."""
    port, text = free_port(), CONFIGURATION.read_text()
    servers = "\n".join(f"  server api{n} 127.0.0.1:{one}" for n, one in enumerate(ports))
    for pattern, new in [
        (r"^  bind :8000$", f"  bind 127.0.0.1:{port}"),
        (r"^  server-template .*$", servers),
        (r"^resolvers(.|\n)*?(?=^frontend)", ""),
    ]:
        text, n_found = re.subn(pattern, new, text, flags=re.MULTILINE)
        assert n_found == 1
    path = folder / "haproxy.cfg"
    path.write_text(text)
    with (folder / "haproxy.log").open("w") as log:
        return subprocess.Popen(["haproxy", "-db", "-f", path], stderr=log), port


@pytest.mark.slow
def test_a_rolling_restart_loses_no_request(tmp_path) -> None:
    if shutil.which("haproxy") is None:
        assert "CI" not in os.environ, "HAProxy is required in CI"
        pytest.skip("HAProxy is not installed")
    folder = tmp_path / "data"
    with ExitStack() as processes:
        apis = []
        for words in ((), ("--no-worker",)):
            apis.append(Api(folder, *words))
            processes.callback(apis[-1].log.close)
            processes.callback(lambda one=apis[-1]: one.process.kill() or one.process.wait())
        with howsure.Client(f"http://127.0.0.1:{apis[0].port}") as client:
            client.calibrate(DIGITS / "model.onnx", DIGITS / "calibration.npz", name="digits")
        proxy, port = start_proxy(tmp_path, [one.port for one in apis])
        processes.callback(lambda: proxy.kill() or proxy.wait())
        wait_until_ready(port)
        body = (DIGITS / "request.json").read_bytes()
        url = f"http://127.0.0.1:{port}/predict"
        first = httpx.post(url, content=body, headers={"Content-Type": "application/json"})
        log = tmp_path / "haproxy.log"
        with Load(port, probabilities(first)) as load:
            for restarts, api in enumerate(apis, start=1):
                time.sleep(1)
                assert api.stop() == 0
                api.start()
                wait_for_text(log, "is UP", n_times=restarts)
    sys.stdout.write(f"{len(load.waits)} requests, longest wait {max(load.waits):.2f} s\n")
    assert not load.failures
    # The proxy has learnt of each stop while the API still accepted connections.
    told = log.read_text()
    assert re.findall(r"is DOWN, reason: ([^,]+), code: (\d+)", told) == 2 * [
        ("Layer7 wrong status", "503")
    ]
    assert told.count("is DOWN") == 2
    assert len(load.waits) > 500

"""Two APIs behind HAProxy restart one after the other, and no request is lost."""

import json
import os
import re
import shutil
import socket
import subprocess
import sys
import threading
import time
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Self

import httpx
import pytest
from howsure_command import ServedProcess
from runner_children import wait_until
from running_service import DIGITS

import howsure

CONFIGURATION = Path(__file__).parents[2] / "docker" / "haproxy.cfg"
N_CLIENTS = 4
PAUSE_SECONDS = 0.015


def started(running: ExitStack, folder: Path, port: int, *words: str) -> ServedProcess:
    """Start `howsure serve` on a port, and wait until it is ready."""
    log_folder = folder.with_name(str(port))
    log_folder.mkdir(exist_ok=True)
    settings = {"data_dir": str(folder), "port": str(port), "drain_seconds": "2"}
    process = ServedProcess(log_folder, ("serve", *words), **settings)
    running.callback(process.kill)
    assert wait_until(lambda: is_ready(port))
    return process


def is_ready(port: int) -> bool:
    with suppress(httpx.TransportError):
        return httpx.get(f"http://127.0.0.1:{port}/readyz", timeout=5).is_success
    return False


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
    folder, apis = tmp_path / "data", []
    with ExitStack() as processes:
        for words in ((), ("--no-worker",)):
            port = free_port()
            apis.append((port, words, started(processes, folder, port, *words)))
        with howsure.Client(f"http://127.0.0.1:{apis[0][0]}") as client:
            client.calibrate(DIGITS / "model.onnx", DIGITS / "calibration.npz", name="digits")
        proxy, port = start_proxy(tmp_path, [one for one, *_ in apis])
        processes.callback(lambda: proxy.kill() or proxy.wait())
        assert wait_until(lambda: is_ready(port))
        body = (DIGITS / "request.json").read_bytes()
        url = f"http://127.0.0.1:{port}/predict"
        first = httpx.post(url, content=body, headers={"Content-Type": "application/json"})
        log = tmp_path / "haproxy.log"
        with Load(port, probabilities(first)) as load:
            for number, (own_port, words, api) in enumerate(apis):
                time.sleep(1)
                api.process.terminate()
                assert api.process.wait(60) == 0
                started(processes, folder, own_port, *words)
                assert wait_until(lambda n=number: log.read_text().count("is UP") > n)
    sys.stdout.write(f"{len(load.waits)} requests, longest wait {max(load.waits):.2f} s\n")
    assert not load.failures
    # The proxy has learnt of each stop while the API still accepted connections.
    told = log.read_text()
    assert re.findall(r"is DOWN, reason: ([^,]+), code: (\d+)", told) == 2 * [
        ("Layer7 wrong status", "503")
    ]
    assert told.count("is DOWN") == 2
    assert len(load.waits) > 500

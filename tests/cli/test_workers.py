"""`howsure worker`, and the health check of the image."""

import os
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path

import httpx
import pytest
from howsure_command import howsure
from runner_children import wait_until

HEALTH_CHECK = Path(__file__).parents[2] / "docker" / "healthcheck.py"


@pytest.mark.process
def test_a_worker_serves_its_health_until_a_signal(tmp_path) -> None:
    """In this process, to which another thread sends the signal."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    answers = {}

    def visit() -> None:
        try:
            with httpx.Client(base_url=f"http://127.0.0.1:{port}") as client:
                assert wait_until(lambda: is_healthy(HOWSURE_WORKER_PORT=port))
                for path in ("/healthz", "/readyz", "/calibrations"):
                    answers[path] = client.get(path)
                answers["/predict"] = client.post("/predict", json={})
        finally:
            os.kill(os.getpid(), signal.SIGTERM)

    visitor = threading.Thread(target=visit)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # until the worker handles it
    visitor.start()
    try:
        done = howsure("worker", "--port", port, "--workers", 1, folder=tmp_path)
    finally:
        visitor.join()
    assert (done.returncode, "has stopped" in done.stderr) == (0, True)
    assert [answer.status_code for answer in answers.values()] == [200, 200, 404, 404]
    assert answers["/readyz"].json()["checks"]["database"] == "ok"
    assert answers["/predict"].json()["type"] == "urn:howsure:problem:not-found"
    assert not is_healthy(HOWSURE_WORKER_PORT=port)


def test_a_container_of_the_service_is_healthy(service) -> None:
    assert is_healthy(HOWSURE_PORT=service.client.base_url.port)


def is_healthy(**ports: int | None) -> bool:
    """Run the health check of the image, for which there is nobody on other ports than these."""
    nobody = {"HOWSURE_PORT": "1", "HOWSURE_WORKER_PORT": "1"}
    variables = nobody | {name: str(port) for name, port in ports.items()}
    done = subprocess.run([sys.executable, HEALTH_CHECK], env=variables, check=False)
    return done.returncode == 0

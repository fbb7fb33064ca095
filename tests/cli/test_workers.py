"""`howsure serve --no-worker` and `howsure worker`: real processes on one PostgreSQL database."""

import os
import re
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import httpx
import pytest
from howsure_command import ServedProcess, howsure
from job_workspaces import inputs_set
from runner_children import wait_until
from runner_models import endless_above
from running_service import DIGITS_PARTS, calibrate, scrape

HEALTH_CHECK = Path(__file__).parents[2] / "docker" / "healthcheck.py"
# Some seconds of turns, for one row.
TURNS = 1_500_000


API, *WORKERS = range(3)


@pytest.fixture
def site(migrated_schemas, tmp_path: Path) -> Iterator[list[ServedProcess]]:
    """An API without workers, and two workers."""
    with migrated_schemas.lend() as url, ExitStack() as running:
        shared = {"database_url": url, "artifacts_url": str(tmp_path / "artifacts")}
        commands = {API: ("serve", "--no-worker")} | dict.fromkeys(WORKERS, ("worker",))
        processes = []
        for number, words in commands.items():
            folder = tmp_path / str(number)
            folder.mkdir()
            processes.append(ServedProcess(folder, words, threads="1", **shared))
            running.enter_context(processes[-1])
        yield processes


def attempt(process: ServedProcess, calibration: str) -> str | None:
    """Return the number of the attempt that a process began, if it did."""
    log = re.sub(r"\x1b\[[\d;]*m", "", process.log.read_text())
    found = re.search(rf"job_started.*attempt=(\d+).*id={calibration}", log)
    return found and found[1]


@pytest.mark.slow
def test_workers_share_the_jobs_and_hand_them_on(site) -> None:
    api = site[API].client
    slow_model = endless_above(1000.0, turns=TURNS).SerializeToString()
    slow = calibrate(api, model=slow_model, calibration=inputs_set(ends=False), wait=0)
    slow_id = slow.json()["id"]
    assert wait_until(lambda: any(attempt(site[n], slow_id) for n in WORKERS), seconds=40)
    (first,) = (number for number in WORKERS if attempt(site[number], slow_id))
    (second,) = set(WORKERS) - {first}

    site[first].process.send_signal(signal.SIGTERM)
    quick = calibrate(api, **DIGITS_PARTS, wait=0)
    site[first].process.wait(60)

    assert "job_requeued" in site[first].log.read_text()

    def status(made: httpx.Response) -> str:
        return api.get(made.headers["Location"]).json()["status"]

    for made in (quick, slow):
        assert wait_until(lambda made=made: status(made) not in {"queued", "running"}, seconds=200)
        assert status(made) == "succeeded"
    assert attempt(site[second], slow_id) == "1"
    assert "job_started" not in site[API].log.read_text()
    assert scrape(site[second].client)("jobs", kind="calibration", status="succeeded") == 2


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
    return (
        subprocess.run([sys.executable, HEALTH_CHECK], env=variables, check=False).returncode == 0
    )

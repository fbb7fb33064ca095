"""`howsure serve --no-worker` and `howsure worker`: real processes on one PostgreSQL database."""

import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest
from howsure_command import ServedProcess
from job_workspaces import inputs_set
from runner_children import wait_until
from runner_models import endless_above
from running_service import calibrate, digits, scrape

HEALTH_CHECK = Path(__file__).parents[3] / "docker" / "healthcheck.py"
# Some seconds of turns, for one row.
TURNS = 1_500_000
EXIT_SECONDS = 8.0


@dataclass
class Site:
    """The processes, clients of theirs, and what each has logged."""

    api: httpx.Client
    health: list[httpx.Client]
    processes: list[ServedProcess]

    def log(self, number: int) -> str:
        return self.processes[number].log.read_text()

    def started(self, number: int, calibration_id: str) -> str | None:
        """Return the attempt with which a process began the job, if it did."""
        pattern = rf"job_started.*attempt=(\d+).*id={calibration_id}"
        found = re.search(pattern, re.sub(r"\x1b\[[\d;]*m", "", self.log(number)))
        return found and found[1]

    def resource(self, made: httpx.Response) -> dict:
        return self.api.get(made.headers["Location"]).json()

    def ended(self, made: httpx.Response) -> bool:
        return self.resource(made)["status"] not in ("queued", "running")


API, *WORKERS = range(3)


@pytest.fixture
def site(migrated_schemas, tmp_path: Path) -> Iterator[Site]:
    with migrated_schemas.lend() as url, ExitStack() as running:
        shared = {"database_url": url, "artifacts_url": str(tmp_path / "artifacts")}
        commands = {API: ("serve", "--no-worker")} | dict.fromkeys(WORKERS, ("worker",))
        processes = []
        for number, words in commands.items():
            folder = tmp_path / str(number)
            folder.mkdir()
            processes.append(ServedProcess(folder, words, threads="1", **shared))
        api, *health = [running.enter_context(process) for process in processes]
        yield Site(api, health, processes)


def test_workers_share_the_jobs_and_hand_them_on(site: Site) -> None:
    slow_model = endless_above(1000.0, turns=TURNS).SerializeToString()
    slow = calibrate(site.api, model=slow_model, calibration=inputs_set(ends=False), wait=0)
    slow_id = slow.json()["id"]
    assert wait_until(lambda: any(site.started(n, slow_id) for n in WORKERS), seconds=40)
    (first,) = (number for number in WORKERS if site.started(number, slow_id))
    (second,) = set(WORKERS) - {first}

    process = site.processes[first].process
    process.send_signal(signal.SIGTERM)
    parts = {"model": digits("model.onnx"), "calibration": digits("calibration.npz")}
    quick = calibrate(site.api, **parts, wait=0)
    process.wait(EXIT_SECONDS)

    assert "job_requeued" in site.log(first)
    for made in (quick, slow):
        assert wait_until(lambda made=made: site.ended(made), seconds=60)
        resource = site.resource(made)
        assert resource["status"] == "succeeded", resource["error"]
    assert site.started(second, slow_id) == "1"
    assert "job_started" not in site.log(API)
    health = site.health[second - 1]
    answers = {path: health.get(path) for path in ("/healthz", "/readyz", "/calibrations")}
    assert [answer.status_code for answer in answers.values()] == [200, 200, 404]
    assert answers["/readyz"].json()["checks"]["database"] == "ok"
    assert health.post("/predict", json={}).json()["type"] == "urn:howsure:problem:not-found"
    assert scrape(health)("jobs", kind="calibration", status="succeeded") == 2
    # Whichever process a container runs.
    assert is_healthy(HOWSURE_PORT=site.api.base_url.port)
    assert is_healthy(HOWSURE_WORKER_PORT=health.base_url.port)
    assert not is_healthy(HOWSURE_WORKER_PORT=site.health[first - 1].base_url.port)


def is_healthy(**ports: int | None) -> bool:
    """Run the health check of the image, for which there is nobody on other ports than these."""
    nobody = {"HOWSURE_PORT": "1", "HOWSURE_WORKER_PORT": "1"}
    variables = nobody | {name: str(port) for name, port in ports.items()}
    return (
        subprocess.run([sys.executable, HEALTH_CHECK], env=variables, check=False).returncode == 0
    )

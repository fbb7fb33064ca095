"""Starts docker-compose.yml, kills and restarts each container under load, and checks every answer.

``make deploy-check`` runs it. It needs Docker or Podman with compose, and port 8000. It removes its
containers and volumes at the end. Variables of the environment:

COMPOSE_FILE
    Further compose files, as of ``docker compose``.
BUILD
    ``no`` uses images that exist: ``howsure:cpu``.
"""

import json
import os
import shutil
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import httpx

from howsure.client import Client, HowsureError

ROOT = Path(__file__).resolve().parents[1]
DIGITS = ROOT / "examples" / "digits"
URL = "http://127.0.0.1:8000"
ENGINES = (("docker", "compose"), ("docker-compose",), ("podman", "compose"))
CONTAINERS = ("worker", "postgres", "s3", "api")
N_CLIENTS = 4
PAUSE_SECONDS = 0.02
START_SECONDS = 300.0
# Clients that connect without a load balancer see the restart of the only API container.
AFTER_RESTART_SECONDS = 2.0


@dataclass
class Phase:
    """What happened to the predictions during one disturbance."""

    name: str
    seconds: float = 0.0
    outcomes: Counter[str] = field(default_factory=Counter)
    longest_wait: float = 0.0

    def row(self) -> str:
        """Return a row of the table."""
        good, busy = self.outcomes["ok"], self.outcomes["503"]
        others = sum(self.outcomes.values()) - good - busy
        return (
            f"| {self.name} | {self.seconds:.1f} s | {good:,} | {busy} | {others} "
            f"| {self.longest_wait:.2f} s |"
        )


class Compose:
    """The containers of the project."""

    def __init__(self) -> None:
        self._words = self._find()

    def run(self, *words: str, quiet: bool = True) -> None:
        """Run a command of compose.

        Raises
        ------
        subprocess.CalledProcessError
            If it fails.
        """
        command = [*self._words, "-p", "howsure-check", "--profile", "cpu", *words]
        subprocess.run(command, cwd=ROOT, check=True, capture_output=quiet, text=True)

    @staticmethod
    def _find() -> tuple[str, ...]:
        for words in ENGINES:
            program = shutil.which(words[0])
            if program is None:
                continue
            command = [program, *words[1:]]
            # `version` needs compose, `ps` needs the engine.
            if all(_succeeds([*command, word]) for word in ("version", "ps")):
                return tuple(command)
        return ()

    def is_found(self) -> bool:
        """Return whether an engine with compose answers."""
        return bool(self._words)


def _succeeds(command: list[str]) -> bool:
    return subprocess.run(command, cwd=ROOT, capture_output=True, check=False).returncode == 0


class Load:
    """Predictions from several clients. Each answer is compared with the first one."""

    def __init__(self) -> None:
        body = json.loads((DIGITS / "request.json").read_text(encoding="utf-8"))
        self._bodies = [{"calibration": "first", "inputs": [row]} for row in body["inputs"]] or [
            body
        ]
        self._expected: list[Any] = []
        self.phase = Phase("before")
        self.phases = [self.phase]
        self.wrong: list[str] = []
        self._stopping = threading.Event()
        self._lock = threading.Lock()
        self._threads = [threading.Thread(target=self._repeat) for _ in range(N_CLIENTS)]

    def learn(self) -> None:
        """Keep the answers that all later ones must equal."""
        with httpx.Client(base_url=URL, timeout=30) as client:
            self._expected = [
                served(client.post("/predict", json=body).raise_for_status())
                for body in self._bodies
            ]

    def compare(self, name: str) -> None:
        """Compare the answers of another calibration of the same model and set."""
        with httpx.Client(base_url=URL, timeout=30) as client:
            for body, expected in zip(self._bodies, self._expected, strict=True):
                found = client.post("/predict", json={**body, "calibration": name})
                if served(found.raise_for_status()) != expected:
                    self.wrong.append(name)

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        for thread in self._threads:
            thread.join()

    @contextmanager
    def during(self, name: str) -> Iterator[None]:
        """Count the answers of a disturbance apart."""
        phase = Phase(name)
        with self._lock:
            self.phases.append(phase)
            self.phase = phase
        began = time.monotonic()
        yield
        phase.seconds = time.monotonic() - began

    def _repeat(self) -> None:
        position = 0
        with httpx.Client(base_url=URL, timeout=30) as client:
            while not self._stopping.is_set():
                position = (position + 1) % len(self._bodies)
                began = time.monotonic()
                outcome = self._ask(client, position)
                waited = time.monotonic() - began
                with self._lock:
                    self.phase.outcomes[outcome] += 1
                    self.phase.longest_wait = max(self.phase.longest_wait, waited)
                time.sleep(PAUSE_SECONDS)

    def _ask(self, client: httpx.Client, position: int) -> str:
        try:
            answer = client.post("/predict", json=self._bodies[position])
        except httpx.TransportError as error:
            return type(error).__name__
        if answer.status_code != httpx.codes.OK:
            return str(answer.status_code)
        if served(answer) != self._expected[position]:
            self.wrong.append(f"{self.phase.name}: {answer.text[:200]}")
            return "wrong"
        return "ok"


def served(answer: httpx.Response) -> list[tuple[Any, ...]]:
    """Return the classes, probabilities and intervals of an answer.

    Scores are left out: their last digits depend on the rows that run in the same batch.
    """
    return [
        (row["class"], *((event["probability"], event["interval"]) for event in events(row)))
        for row in answer.json()["predictions"]
    ]


def events(row: dict[str, Any]) -> list[dict[str, Any]]:
    """Return Top-1 and Top-k of a prediction."""
    return [row[name] for name in sorted(row) if name.startswith("top")]


def wait_until_ready() -> None:
    """Wait until the API is ready.

    Raises
    ------
    TimeoutError
        If it does not become ready.
    """
    until = time.monotonic() + START_SECONDS
    while time.monotonic() < until:
        try:
            if httpx.get(f"{URL}/readyz", timeout=2).is_success:
                return
        except httpx.TransportError:
            pass
        time.sleep(0.2)
    raise TimeoutError(f"{URL}/readyz did not answer 200 within {START_SECONDS:.0f} s")


def begin(client: Client, name: str) -> str:
    """Upload a calibration, again while the service has no database or store; return its id."""
    until = time.monotonic() + START_SECONDS
    while True:
        try:
            return client.calibrate(
                DIGITS / "model.onnx", DIGITS / "calibration.npz", name=name, wait=False
            ).id
        except HowsureError as error:
            if time.monotonic() > until or error.status not in (None, 503):
                raise
            time.sleep(0.5)


def disturb(compose: Compose, client: Client, load: Load) -> dict[str, str]:
    """Kill and restart each container during a calibration; return names of calibrations by id."""
    jobs = {}
    for container in CONTAINERS:
        for way in ("kill", "restart"):
            name = f"{way}-{container}"
            jobs[begin(client, name)] = name
            with load.during(f"{way} {container}"):
                compose.run(way, container)
                if way == "kill":
                    compose.run("start", container)
                wait_until_ready()
                time.sleep(AFTER_RESTART_SECONDS)
    return jobs


def check(compose: Compose) -> bool:
    """Run all steps; return whether every rule held."""
    client = Client(URL)
    load = Load()
    client.calibrate(DIGITS / "model.onnx", DIGITS / "calibration.npz", name="first")
    load.learn()
    with load:
        time.sleep(3)
        jobs = disturb(compose, client, load)
        jobs |= {begin(client, f"after-{n}"): f"after-{n}" for n in (1, 2)}
        with load.during("all jobs end"):
            lost = [name for job, name in jobs.items() if not has_succeeded(client, job)]
    compose.run("down")
    compose.run("up", "-d", "--no-build")
    wait_until_ready()
    for name in ("first", *jobs.values()):
        if name not in lost:
            load.compare(name)
    print("| disturbance | seconds | answered | 503 | other failures | longest wait |")
    print("|---|---|---|---|---|---|")
    for phase in load.phases:
        print(phase.row())
    failures = {
        phase.name: dict(phase.outcomes)
        for phase in load.phases
        if set(phase.outcomes) - {"ok", "503"} and not phase.name.endswith(" api")
    }
    for phase in load.phases:
        if phase.name.endswith(" api"):
            print(f"{phase.name}: {dict(phase.outcomes)}")
    print(f"calibrations: {len(jobs)}, lost: {lost}")
    print(f"wrong answers: {len(load.wrong)} {load.wrong[:3]}")
    print(f"failures of other containers' restarts: {failures}")
    return not (lost or load.wrong or failures)


def has_succeeded(client: Client, job: str) -> bool:
    """Wait for the end of a calibration."""
    try:
        return client.wait(job, seconds=START_SECONDS).status == "succeeded"
    except HowsureError as error:
        print(f"{job}: {error}")
        return False


def main() -> int:
    """Return the exit code of the command."""
    compose = Compose()
    if not compose.is_found():
        print("deploy-check skipped: no Docker or Podman engine with compose answers")
        return 0
    if os.environ.get("BUILD") != "no":
        compose.run("build", quiet=False)
    try:
        compose.run("up", "-d", "--no-build")
        wait_until_ready()
        return 0 if check(compose) else 1
    except subprocess.CalledProcessError as error:
        print(error, error.stderr)
        return 1
    finally:
        compose.run("down", "--volumes")


if __name__ == "__main__":
    sys.exit(main())

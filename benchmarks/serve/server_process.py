"""Servers as separate processes, in temporary folders, ended with all descendants."""

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn

import httpx

from serve.networks import Network
from serve.process_tree import tree

BENCHMARKS = Path(__file__).parent.parent
START_SECONDS = 60.0
STOP_SECONDS = 15.0
CALIBRATE_SECONDS = 300


@dataclass(frozen=True)
class ServerProcess:
    """A server at ``host:port``."""

    name: str
    address: str
    pid: int
    log: Path


@contextmanager
def running(
    name: str,
    command: Sequence[str],
    folder: Path,
    settings: Mapping[str, str],
    python: str = sys.executable,
) -> Iterator[ServerProcess]:
    """Start a Python module that prints its address; end it and its descendants."""
    log = folder / f"{name}.log"
    own = {key: value for key, value in os.environ.items() if not key.startswith("HOWSURE_")}
    with log.open("wb") as file:
        process = subprocess.Popen(  # noqa: S603 - our own interpreter and modules
            [python, "-m", *command],
            env={**own, **settings},
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=file,
            start_new_session=True,  # Ctrl-C is for whoever started us, who then ends it in order
        )
    try:
        yield ServerProcess(name, _address(process, log), process.pid, log)
    finally:
        _stop(process)


@contextmanager
def service(
    *,
    name: str = "howsure",
    python: str = sys.executable,
    watched: Path | None = None,
    **settings: str,
) -> Iterator[ServerProcess]:
    """Start ``howsure serve`` with a fresh data folder; other keywords are settings.

    With ``watched``, a watchdog writes its stalls to that file.
    """
    with tempfile.TemporaryDirectory(prefix="howsure-benchmark-") as scratch:
        options = {"data_dir": f"{scratch}/data", "port": "0", "device": "cpu"} | settings
        environment = {f"HOWSURE_{key.upper()}": value for key, value in options.items()}
        command = ["service", "serve"]
        if watched is not None:
            command[0] = "serve.watched_service"
            environment |= {"PYTHONPATH": str(BENCHMARKS), "WATCH_FILE": str(watched)}
        with running(name, command, Path(scratch), environment, python) as server:
            yield server


@contextmanager
def bare_server(
    networks: Sequence[Network], *, threads: int, worker: bool
) -> Iterator[ServerProcess]:
    """Start the bare server with these models; ``worker`` runs them in a separate thread."""
    with tempfile.TemporaryDirectory(prefix="howsure-benchmark-") as scratch:
        files = []
        for network in networks:
            path = Path(scratch) / f"{network.name}.onnx"
            path.write_bytes(network.onnx_model)
            files.append(str(path))
        name = "bare, thread" if worker else "bare"
        command = ["serve.bare_server", "--threads", str(threads)]
        command += [*(["--worker"] if worker else []), *files]
        with running(name, command, Path(scratch), {"PYTHONPATH": str(BENCHMARKS)}) as server:
            yield server


def calibrate(
    server: ServerProcess,
    network: Network,
    *,
    samples: int = 2000,
    key: str | None = None,
    **config: object,
) -> None:
    """Calibrate a network under its own name, for the tenant of the key."""
    files: dict[str, Any] = {
        "model": network.onnx_model,
        "calibration": network.labelled_set(samples, seed=3),
        "config": (None, json.dumps({"name": network.name, "bins": 15, "lookup": "step"} | config)),
    }
    answer = httpx.post(
        f"http://{server.address}/calibrate",
        files=files,
        headers={"Prefer": f"wait={CALIBRATE_SECONDS}"}
        | ({} if key is None else {"Authorization": f"Bearer {key}"}),
        timeout=CALIBRATE_SECONDS,
    )
    if answer.status_code != httpx.codes.CREATED or answer.json()["status"] != "succeeded":
        raise SystemExit(f"the calibration did not succeed: {answer.text}")


def new_key(data: Path, tenant: str) -> str:
    """Make an API key of a tenant with all scopes."""
    scopes = [
        part for scope in ("predict", "read", "write", "admin") for part in ("--scope", scope)
    ]
    printed = subprocess.run(  # noqa: S603 - our own interpreter and module
        [sys.executable, "-m", "service", "keys", "create", tenant, "--tenant", tenant, *scopes],
        env={**os.environ, "HOWSURE_DATA_DIR": str(data)},
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    found = re.search(r"cal_\S+", printed)
    if found is None:
        raise SystemExit(f"no key was made: {printed}")
    return found[0]


def end_in_order_when_told() -> None:
    """Let SIGTERM and SIGHUP unwind this process like Ctrl-C."""

    def leave(number: int, _: FrameType | None) -> NoReturn:
        raise SystemExit(128 + number)

    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, leave)


def _address(process: subprocess.Popen[bytes], log: Path) -> str:
    until = time.monotonic() + START_SECONDS
    while process.poll() is None and time.monotonic() < until:
        if found := re.search(r"http://([\d.]+:\d+)", log.read_text()):
            return found[1]
        time.sleep(0.05)
    raise SystemExit(f"the server did not start: {log.read_text()}")


def _stop(process: subprocess.Popen[bytes]) -> None:
    below = tree(process.pid)[1:]
    process.terminate()
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(STOP_SECONDS)
    process.kill()
    process.wait()
    until = time.monotonic() + STOP_SECONDS
    while (left := [pid for pid in below if Path(f"/proc/{pid}").exists()]) and (
        time.monotonic() < until
    ):
        time.sleep(0.05)
    for pid in left:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)

"""`howsure serve --processes 2`: real processes, spoken to over real connections."""

import os
import re
import signal
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import httpx
import numpy as np
import pytest
from howsure_command import ServedProcess
from runner_children import is_gone, wait_until
from running_service import DIGITS, DIGITS_PARTS, calibrated, scrape
from server_processes import (
    client_of,
    client_port,
    holds,
    server_processes,
    stopped,
)

HEALTH_REQUEST = {"method": "GET", "route": "/healthz", "status": "200"}
STATUS = "requests_total"
# A supervisor that waits 3 s for a process that does not write.
IMPATIENT = """
import sys
from service.cli.server import bind
from service.cli.processes.supervisor import Supervisor
from service.settings import Settings

settings = Settings(_env_file=None, data_dir=sys.argv[1], device="cpu", processes=2)
ready = lambda: print("ready", flush=True)
Supervisor(settings, bind("127.0.0.1", 0), ready, hung_seconds=3.0).run()
"""


@pytest.fixture
def served(tmp_path: Path) -> ServedProcess:
    return ServedProcess(tmp_path, processes="2", max_processes="1", threads="1")


@pytest.mark.process
def test_every_process_answers_for_all_of_them(served) -> None:
    parent = served.process.pid
    rows = np.load(DIGITS / "evaluation.npz")["inputs"][:7].tolist()
    with served as client:
        first, second = server_processes(parent)
        address = str(client.base_url)
        calibrated(client, {"name": "digits"}, **DIGITS_PARTS)
        for _ in range(20):
            assert httpx.get(client.base_url.join("healthz"), timeout=60).is_success
        with client_of(first, address) as one, client_of(second, address) as other:
            for asked in (one, other, other):
                answer = asked.post("/predict", json={"calibration": "digits", "inputs": rows})
                assert answer.status_code == httpx.codes.OK, answer.text
            # A process writes what it counted each second.
            assert wait_until(lambda: scrape(one)(STATUS, **HEALTH_REQUEST) == 20)
            assert wait_until(lambda: scrape(one)("predict_rows_total") == 3 * len(rows))
            for value in (scrape(one), scrape(other)):
                assert value(STATUS, **HEALTH_REQUEST) == 20
                assert value("request_seconds_count", method="GET", route="/healthz") == 20
                assert value("predict_rows_total") == 3 * len(rows)
                assert value("pending_requests", lane="predict") == 0
                assert value("jobs", kind="calibration", status="succeeded") == 1
                assert value("database_up") == 1
            # A process that does not run counts as it wrote last.
            with stopped(second):
                assert scrape(one)(STATUS, **HEALTH_REQUEST) == 20


@pytest.mark.slow
def test_one_that_is_killed_comes_back_and_all_end_together(served, tmp_path) -> None:
    parent = served.process.pid
    with served as client:
        address = str(client.base_url)
        first, second = server_processes(parent)
        with client_of(first, address) as one, client_of(second, address) as other:
            for _ in range(9):
                one.get("/healthz")
            assert wait_until(lambda: scrape(other)(STATUS, **HEALTH_REQUEST) == 9)
            os.kill(first, signal.SIGKILL)
            assert wait_until(lambda: len(set(server_processes(parent)) - {first}) == 2)
            assert re.search(r"server_process_ended.*SIGKILL", served.log.read_text())
            assert scrape(other)(STATUS, **HEALTH_REQUEST) == 9, "no count falls"
        (again,) = set(server_processes(parent)) - {first, second}
        with client_of(again, address) as one:
            assert wait_until(lambda: scrape(one)(STATUS, **HEALTH_REQUEST) == 9)
        served.process.send_signal(signal.SIGINT)
        assert served.process.wait(30) == 0
        assert is_gone(second)
        assert is_gone(again)
    assert [path.name for path in (tmp_path / "spool").iterdir()] == [".lock"]
    killed = ServedProcess(tmp_path, processes="2")
    with killed as client:
        assert client.get("/readyz").status_code == httpx.codes.OK
        processes = server_processes(killed.process.pid)
        killed.kill()
        assert wait_until(lambda: all(is_gone(pid) for pid in processes))


@pytest.mark.slow
def test_connections_spread_over_the_processes(tmp_path) -> None:
    served = ServedProcess(tmp_path, processes="4", threads="1")
    with served as client, ExitStack() as opened:
        held = dict.fromkeys(server_processes(served.process.pid), 0)
        assert len(held) == 4
        for _ in range(32):
            one = opened.enter_context(httpx.Client(base_url=client.base_url, timeout=60))
            port = client_port(one.get("healthz"))
            (holder,) = [pid for pid in held if holds(pid, port)]
            held[holder] += 1
    # 32 connections leave two of four processes without any in one of 700 million trials.
    assert sum(count > 0 for count in held.values()) >= 3, held


@pytest.mark.slow
def test_one_that_hangs_is_replaced(tmp_path) -> None:
    supervisor = subprocess.Popen(
        [sys.executable, "-c", IMPATIENT, str(tmp_path)],
        stderr=subprocess.DEVNULL,
        text=True,
        stdout=subprocess.PIPE,
    )
    try:
        assert supervisor.stdout.readline() == "ready\n"
        hung, other = server_processes(supervisor.pid)
        os.kill(hung, signal.SIGSTOP)
        assert wait_until(
            lambda: len(set(server_processes(supervisor.pid)) - {hung, other}) == 1, seconds=30
        )
        assert is_gone(hung)
        supervisor.send_signal(signal.SIGTERM)
        assert supervisor.wait(30) == 0
    finally:
        supervisor.kill()
        supervisor.wait()
        supervisor.stdout.close()


@pytest.mark.slow
def test_a_process_that_cannot_start_ends_the_service_with_a_sentence(tmp_path) -> None:
    (tmp_path / "spool").write_text("no folder")
    command = [sys.executable, "-m", "service", "serve", "--port", "0", "--processes", "2"]
    command += ["--data-dir", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)

    assert done.returncode == 1
    assert "answers on" not in done.stderr
    assert re.search(r"server process [12] of 2\D*exit status\s+3", done.stderr)

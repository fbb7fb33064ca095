"""Two APIs behind HAProxy restart one after the other, and no request is lost."""

import os
import re
import shutil
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path

import httpx
import pytest
from fault_plan.figures import Figures
from fault_plan.site import Site, answers, end
from fault_plan.traffic import KnownAnswers, Traffic
from runner_children import wait_until
from running_service import DIGITS_PARTS, calibrated

CONFIGURATION = Path(__file__).parents[2] / "docker" / "haproxy.cfg"
N_CLIENTS = 3


class Unbroken(KnownAnswers):
    """A connection that stays open and ends is a lost request as well."""

    def __call__(self, client: httpx.Client) -> None:
        try:
            super().__call__(client)
        except httpx.TransportError as error:
            self.violations.append(repr(error))


def start_proxy(folder: Path, port: int, apis: list[Site]) -> subprocess.Popen:
    """Start HAProxy with the committed configuration and the addresses of this test."""
    text = CONFIGURATION.read_text()
    servers = "\n".join(f"  server api{n} 127.0.0.1:{one.port}" for n, one in enumerate(apis))
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
        return subprocess.Popen(["haproxy", "-db", "-f", path], stderr=log)


@pytest.mark.slow
def test_a_rolling_restart_loses_no_request(tmp_path) -> None:
    if shutil.which("haproxy") is None:
        assert "CI" not in os.environ, "HAProxy is required in CI"
        pytest.skip("HAProxy is not installed")
    figures, log, words = Figures("rolling-restart", 0), tmp_path / "haproxy.log", ("--no-worker",)
    first = Site(tmp_path / "one", drain_seconds="2")
    second = Site(tmp_path / "two", first.database_url, data_dir=str(first.data), drain_seconds="2")
    front = Site(tmp_path / "front")
    with ExitStack() as processes:
        apis = [(first, (), first.serve()), (second, words, second.serve(*words))]
        for _, _, process in apis:
            processes.callback(end, process)
        client = processes.enter_context(front.client())
        proxy = start_proxy(tmp_path, front.port, [first, second])
        processes.callback(lambda: proxy.kill() or proxy.wait())
        assert wait_until(lambda: answers(client))
        calibrated(client, {"name": "digits"}, **DIGITS_PARTS)
        step = Unbroken(client, "digits")
        with Traffic(front, figures, [step] * N_CLIENTS):
            for number, (site, words, process) in enumerate(apis):
                time.sleep(1)
                process.terminate()
                assert process.wait(60) == 0
                processes.callback(end, site.serve(*words))
                assert wait_until(lambda n=number: log.read_text().count("is UP") > n)
        told = log.read_text()
    sys.stdout.write(f"{step.statuses.total()} requests, longest wait {step.slowest:.2f} s\n")
    assert not figures.violations
    # The proxy has learnt of each stop while the API still accepted connections.
    assert re.findall(r"is DOWN, reason: ([^,]+), code: (\d+)", told) == 2 * [
        ("Layer7 wrong status", "503")
    ]
    assert told.count("is DOWN") == 2
    assert step.statuses.total() > 500

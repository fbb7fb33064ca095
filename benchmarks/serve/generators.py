"""Closed-loop load from a separate process: wrk if it is installed, else our own."""

import argparse
import asyncio
import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import uvloop

from serve.load import closed_loop
from serve.payloads import Payload

BENCHMARKS = Path(__file__).parent.parent
WRK_SCRIPT = """
wrk.method = "POST"
function init(arguments)
  local file = io.open(arguments[1], "rb")
  wrk.body = file:read("*a")
  file:close()
  for i = 2, #arguments do
    local name, value = arguments[i]:match("^([^:]+): (.*)$")
    wrk.headers[name] = value
  end
end
function done(summary, latency, requests)
  local e = summary.errors
  io.write(string.format(
    '@{"answers": %d, "refused": %d, "lost": %d, "seconds": %f, "p50": %f, "p99": %f}\\n',
    summary.requests, e.status, e.connect + e.read + e.write + e.timeout,
    summary.duration / 1e6, latency:percentile(50) / 1e6, latency:percentile(99) / 1e6))
end
"""


@dataclass(frozen=True)
class Measured:
    """One load: successful responses per second, seconds by quantile, and failures."""

    good: int
    rate: float
    p50: float
    p99: float
    failed: int


Generate = Callable[[str, Payload, int, float], Measured]


def by_wrk(address: str, payload: Payload, connections: int, seconds: float) -> Measured:
    """Load with wrk, which takes whole seconds only."""
    with tempfile.TemporaryDirectory(prefix="howsure-benchmark-") as scratch:
        script, body = Path(scratch) / "post.lua", Path(scratch) / "body"
        script.write_text(WRK_SCRIPT)
        body.write_bytes(payload.body)
        duration = f"-d{max(1, round(seconds))}s"
        command = [
            "wrk",
            "-t1",
            f"-c{connections}",
            duration,
            "--timeout",
            "20s",
            "-s",
            str(script),
        ]
        command += [f"http://{address}{payload.path}", "--", str(body)]
        return _measured([*command, *(f"{k}: {v}" for k, v in payload.headers.items())])


def by_ours(address: str, payload: Payload, connections: int, seconds: float) -> Measured:
    """Load with this module as a process; it uses more CPU than wrk."""
    with tempfile.TemporaryDirectory(prefix="howsure-benchmark-") as scratch:
        request = Path(scratch) / "request"
        request.write_bytes(payload.wire(address))
        command = [sys.executable, "-m", "serve.generators", address, str(request)]
        return _measured([*command, str(connections), str(seconds)])


GENERATORS: dict[str, Generate] = {"wrk": by_wrk, "ours": by_ours}


def default_generator() -> str:
    """Return the name of the best installed generator."""
    return "wrk" if shutil.which("wrk") else "ours"


def _measured(command: Sequence[str]) -> Measured:
    done = subprocess.run(  # noqa: S603 - wrk, or our own interpreter
        command, capture_output=True, text=True, cwd=BENCHMARKS, check=False
    )
    for line in done.stdout.splitlines():
        if line.startswith("@"):
            found = json.loads(line[1:])
            good = found["answers"] - found["refused"]
            failed = found["refused"] + found["lost"]
            return Measured(good, good / found["seconds"], found["p50"], found["p99"], failed)
    raise SystemExit(f"the load generator failed: {done.stdout} {done.stderr}")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("address")
    parser.add_argument("request", type=Path)
    parser.add_argument("connections", type=int)
    parser.add_argument("seconds", type=float)
    given = parser.parse_args()
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        load = runner.run(
            closed_loop(
                given.address,
                [given.request.read_bytes()],
                connections=given.connections,
                seconds=given.seconds,
            )
        )
    counts = load.counts()
    p50, p99 = load.quantiles(0.5, 0.99)
    answers = len(load.statuses) - counts[0]
    found = {"answers": answers, "refused": answers - counts[200], "lost": counts[0]}
    print("@" + json.dumps(found | {"seconds": load.seconds, "p50": p50, "p99": p99}))


if __name__ == "__main__":
    main()

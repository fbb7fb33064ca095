"""The harness finds what it is there to find: each of its checks fails where there is reason.

It is also the sample of attacks on a real process that `make test` runs.
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
from hostile_case import Attacker, HostileCase
from hostile_service import HostileService
from keyed_service import logits_of

pytestmark = [
    pytest.mark.process,
    pytest.mark.parametrize("hostile", ["under attack"], indirect=True),
]

NOT_FOUND = 404


def refused(attacker: Attacker) -> httpx.Response:
    return attacker.client.get("/calibrations/none")


def telling(**changed: object) -> Callable[[Attacker], httpx.Response]:
    """Return what sends a request, and changes what is said of it."""

    def send(attacker: Attacker) -> httpx.Response:
        response = refused(attacker)
        body = json.dumps(response.json() | changed).encode()
        headers = {name: response.headers[name] for name in ("content-type", "x-request-id")}
        return httpx.Response(response.status_code, headers=headers, content=body)

    return send


def fails(hostile: Callable, send: Callable, match: str, **expected: Any) -> None:
    case = HostileCase("x", send, **{"status": NOT_FOUND, "code": "not-found"} | expected)
    with pytest.raises(AssertionError, match=match):
        hostile(case)


def test_no_case_expects_a_fault_of_the_service(hostile) -> None:
    hostile(HostileCase("x", refused, NOT_FOUND, "not-found", says="none"))
    for status in (500, 503, 504):
        with pytest.raises(AssertionError):
            HostileCase("x", refused, status, "internal-error")
    HostileCase("x", refused, 504, "deadline-exceeded")


@pytest.mark.parametrize(
    ("send", "match", "expected"),
    [
        (refused, "not-found", {"status": 422}),
        (refused, "not-found", {"code": "conflict"}),
        (refused, "not-found", {"says": "calibration.labels[7]"}),
        (refused, "'errors'", {"rule": "not-onnx"}),
        (refused, "it computed for", {"seconds": -1}),
        (refused, "MiB", {"memory": -1}),
        (telling(request_id="another"), "another", {}),
        (telling(detail="cannot open /tmp/x"), "re.Match", {}),
        (telling(detail="n" * 5000), "characters", {}),
    ],
)
def test_another_answer_or_cost_than_expected_fails(hostile, send, match, expected) -> None:
    fails(hostile, send, match, **expected)


def test_what_is_left_in_a_folder_or_in_the_log_fails(
    hostile, hostile_process: HostileService, monkeypatch
) -> None:
    monkeypatch.setattr("hostile_service.LEFTOVER_SECONDS", 0.1)
    log, secret = hostile_process.data / "serve.log", hostile_process.attacker.key
    folders = (hostile_process.temporary, hostile_process.data / "spool")
    for path in (log, *(folder / "left-behind" for folder in folders)):

        def send(attacker: Attacker, path: Path = path) -> httpx.Response:
            with path.open("a") as file:
                file.write(secret)
            return refused(attacker)

        fails(hostile, send, " not in " if path == log else "left-behind")
        if path != log:
            path.unlink()


def test_computing_while_a_neighbour_waits_fails(hostile, monkeypatch) -> None:
    """Each of its seconds counts as a thousand here."""

    def send(attacker: Attacker) -> httpx.Response:
        attacker.calibrate(logits_of(n=300)).raise_for_status()
        return refused(attacker)

    seconds = HostileService.processor_seconds
    monkeypatch.setattr(HostileService, "processor_seconds", lambda self: 1e3 * seconds(self))
    fails(hostile, send, "the neighbour waited")


@pytest.mark.parametrize("part", ["listed", "prediction"])
def test_a_neighbour_who_sees_something_else_fails(
    hostile, hostile_process: HostileService, monkeypatch, part: str
) -> None:
    changed = hostile_process.expected | {part: b""}
    monkeypatch.setattr(hostile_process, "expected", changed)
    fails(hostile, refused, "assert")

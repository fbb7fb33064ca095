"""The harness finds an answer, a cost and a word that were not expected.

It is also the sample of attacks on a real process that `make test` runs.
"""

import json
from collections.abc import Callable

import httpx
import pytest
from hostile_case import Attacker, HostileCase

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
    case = HostileCase("x", send, **{"status": NOT_FOUND, "code": "not-found"} | expected)
    with pytest.raises(AssertionError, match=match):
        hostile(case)


def test_the_expected_answer_passes(hostile) -> None:
    hostile(HostileCase("x", refused, NOT_FOUND, "not-found", says="none"))

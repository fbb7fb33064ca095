"""The sample of attacks on a real process that `make test` runs."""

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


def test_the_expected_answer_passes(hostile) -> None:
    hostile(HostileCase("x", refused, NOT_FOUND, "not-found", says="none"))

"""Slow models hold up the requests for them, and no others."""

import httpx
import pytest
from busy_service import NAME, QUICK_ROWS, BusyService, busy_service_on
from runner_children import wait_until

QUEUED_ROWS = 5
AT_ONCE = 45
PATHS = ["/healthz", "/readyz", "/calibrations", f"/report?calibration={NAME}"]


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    folder = tmp_path_factory.mktemp("crowded")
    with busy_service_on(folder, predict_queue_rows=QUEUED_ROWS) as service:
        yield service


@pytest.mark.parametrize("path", PATHS)
def test_other_routes_are_answered_meanwhile(service: BusyService, path) -> None:
    with service.occupied():
        assert service.client.get(path).status_code == httpx.codes.OK


def test_requests_beyond_the_queue_are_refused_while_others_wait(service: BusyService) -> None:
    with service.occupied():
        asked = [service.begin(QUICK_ROWS[:1]) for _ in range(AT_ONCE)]
        assert wait_until(
            lambda: sum(future.done() for future in asked) == AT_ONCE - QUEUED_ROWS, seconds=60
        )
        refused = [future.result() for future in asked if future.done()]
        waiting = [future for future in asked if not future.done()]
    for answer in refused:
        assert answer.status_code == httpx.codes.TOO_MANY_REQUESTS
        assert answer.json()["type"] == "urn:howsure:problem:too-many-requests"
        assert int(answer.headers["Retry-After"]) > 0
    assert [future.result().status_code for future in waiting] == [httpx.codes.OK] * QUEUED_ROWS

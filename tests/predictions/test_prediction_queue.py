"""A full queue answers 429 with Retry-After; other routes are answered meanwhile."""

import httpx
import pytest
from busy_service import NAME, PATHS, QUICK_ROWS, busy_service_on, sentence_of
from runner_children import wait_until

OK, TOO_MANY = httpx.codes.OK, httpx.codes.TOO_MANY_REQUESTS
MAX_ROWS = 10
WAITING = MAX_ROWS // len(QUICK_ROWS)
AT_ONCE = 40


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    folder = tmp_path_factory.mktemp("busy")
    with busy_service_on(folder, predict_queue_rows=MAX_ROWS) as service:
        yield service


@pytest.mark.parametrize("path", PATHS)
def test_requests_beyond_the_queue_are_refused_and_the_rest_answered(service, path) -> None:
    expected = service.ask(QUICK_ROWS, path=path).content
    with service.occupied():
        asked = [service.begin(QUICK_ROWS, path=path) for _ in range(AT_ONCE)]
        assert wait_until(
            lambda: sum(found.done() for found in asked) == AT_ONCE - WAITING, seconds=60
        )
        refused = [found.result() for found in asked if found.done()]
        waiting = [found for found in asked if not found.done()]
    for answer in refused:
        assert answer.status_code == TOO_MANY
        assert 1 <= int(answer.headers["Retry-After"]) <= 60
        assert sentence_of(answer).startswith("The prediction queue is full: ")
        if path == "predict":
            assert answer.headers["content-type"] == "application/problem+json"
            assert answer.json()["type"] == "urn:howsure:problem:too-many-requests"
        else:
            assert answer.json().keys() == {"error"}
    assert {found.result().content for found in waiting} == {expected}
    service.wait_for(running=0, pending=0)
    assert service.ask(QUICK_ROWS, path=path).content == expected


def test_other_routes_are_answered_meanwhile(service) -> None:
    with service.occupied():
        for path in ("/healthz", "/readyz", "/calibrations", f"/report?calibration={NAME}"):
            assert service.client.get(path).status_code == OK

"""A full queue answers 429 with Retry-After; other routes are answered meanwhile."""

import httpx
from busy_service import NAME, QUICK_ROWS, sentence_of
from runner_children import wait_until

OK, TOO_MANY = httpx.codes.OK, httpx.codes.TOO_MANY_REQUESTS
AT_ONCE = 20
QUEUE_ROWS = 10


def test_requests_beyond_the_queue_are_refused_and_the_rest_answered(busy) -> None:
    expected = busy.ask().content
    with busy.occupied():
        asked = [busy.begin() for _ in range(AT_ONCE)]
        n_refused = AT_ONCE - QUEUE_ROWS // len(QUICK_ROWS)
        assert wait_until(lambda: sum(found.done() for found in asked) == n_refused)
        refused = [found.result() for found in asked if found.done()]
        waiting = [found for found in asked if not found.done()]
    for answer in refused:
        assert answer.status_code == TOO_MANY
        assert 1 <= int(answer.headers["Retry-After"]) <= 60
        assert sentence_of(answer).startswith("The prediction queue is full: ")
    assert {found.result().content for found in waiting} == {expected}
    busy.wait_for(running=0, pending=0)
    assert busy.ask().content == expected


def test_other_routes_are_answered_meanwhile(busy) -> None:
    with busy.occupied():
        for path in ("/healthz", "/readyz", "/calibrations", f"/report?calibration={NAME}"):
            assert busy.client.get(path).status_code == OK

"""What waits for models is bounded by rows and bytes; who is too much is told when to come."""

from functools import partial

import httpx
import numpy as np
import pytest
from busy_service import PATHS, QUICK_ROWS, busy_service_on, sentence_of
from job_workspaces import logits_set
from runner_children import wait_until
from running_service import calibrate

OK, TOO_MANY = httpx.codes.OK, httpx.codes.TOO_MANY_REQUESTS
MAX_ROWS = 10
# More than one read of a socket brings.
LARGE = np.tile(QUICK_ROWS, (1000, 1))
# In JSON, as it is asked here.
ROW_BYTES = 130


@pytest.fixture(scope="module", params=["rows", "bytes"])
def service(request, tmp_path_factory):
    bounds = {"predict_queue_rows": MAX_ROWS}
    if request.param == "bytes":
        bounds = {"predict_queue_bytes": MAX_ROWS * ROW_BYTES}
    with busy_service_on(tmp_path_factory.mktemp("busy"), **bounds) as service:
        yield service


@pytest.fixture(scope="module")
def few_rows_wait(tmp_path_factory):
    """A service that counts no bytes, which are held until they are answered."""
    folder = tmp_path_factory.mktemp("few")
    with busy_service_on(folder, predict_queue_rows=MAX_ROWS) as service:
        yield service


def fill(service):
    """Let as much wait as may; return who waits."""
    waiting = []
    while True:
        asked = service.begin(QUICK_ROWS)
        until = partial(_is_settled, service, asked, len(waiting) + 1)
        assert wait_until(until)
        if asked.done():
            assert asked.result().status_code == TOO_MANY
            return waiting
        waiting.append(asked)


def _is_settled(service, asked, count: int) -> bool:
    return asked.done() or service.state() == (1, count)


@pytest.mark.parametrize("path", PATHS)
def test_what_is_too_much_is_refused_and_the_rest_answered(service, path) -> None:
    expected = service.ask(QUICK_ROWS).content
    with service.occupied():
        waiting = fill(service)
        assert len(waiting) > 1
        answer = service.ask(QUICK_ROWS, path=path)
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
    assert service.ask(QUICK_ROWS).content == expected


def test_one_that_is_larger_than_all_that_may_wait_is_answered_where_nothing_else_is(
    service,
) -> None:
    answers = [service.ask(LARGE) for _ in range(3)]
    assert [answer.status_code for answer in answers] == [OK] * 3
    assert len(answers[0].json()["predictions"]) == len(LARGE)


def test_one_that_is_larger_than_all_that_may_wait_waits_alone(few_rows_wait) -> None:
    service = few_rows_wait
    with service.occupied():
        large = service.begin(LARGE)
        service.wait_for(running=1, pending=1)
        assert service.ask(QUICK_ROWS).status_code == TOO_MANY
    answer = large.result()
    assert answer.status_code == OK, answer.text
    assert len(answer.json()["predictions"]) == len(LARGE)
    assert service.ask(LARGE).content == answer.content


def test_who_gives_up_leaves_room(few_rows_wait) -> None:
    service = few_rows_wait
    with service.occupied():
        brief = service.begin(QUICK_ROWS, Timeout="1")
        service.wait_for(running=1, pending=1)
        assert service.ask(LARGE).status_code == TOO_MANY
        assert brief.result().status_code == httpx.codes.GATEWAY_TIMEOUT
        large = service.begin(LARGE)
        service.wait_for(running=1, pending=1)
    assert large.result().status_code == OK


def test_a_calibration_without_a_model_has_the_same_bounds(service) -> None:
    made = calibrate(service.client, calibration=logits_set(), config='{"name": "outputs"}')
    assert made.json()["status"] == "succeeded", made.text
    with service.occupied():
        waiting = fill(service)
        assert ask_outputs(service).status_code == TOO_MANY
    assert all(found.result().status_code == OK for found in waiting)
    assert ask_outputs(service).status_code == OK


def ask_outputs(service) -> httpx.Response:
    return service.client.post(
        "/predict", json={"calibration": "outputs", "logits": [[0.1, 0.2, 0.3]] * MAX_ROWS}
    )

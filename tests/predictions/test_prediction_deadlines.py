"""Deadlines of predictions hold while they wait and while they run."""

import gzip
import json

import httpx
import pytest
from busy_service import NAME, PATHS, QUICK_ROWS, busy_service_on, sentence_of
from request_formats import in_json, infer

OK, TIMEOUT = httpx.codes.OK, httpx.codes.GATEWAY_TIMEOUT
BRIEFLY = "0.2"
BRIEFLY_US = 200_000
LONG_ENOUGH_TO_BEGIN = "2"


def request(*, timeout: object) -> dict:
    return {"inputs": [in_json("x", QUICK_ROWS)], "parameters": {"timeout": timeout}}


@pytest.fixture(scope="module")
def busy(tmp_path_factory):
    """A service whose queue is not full before a deadline has passed."""
    with busy_service_on(tmp_path_factory.mktemp("busy")) as service:
        yield service


@pytest.mark.parametrize("path", PATHS)
def test_a_running_request_ends_at_its_deadline(busy, path) -> None:
    expected = busy.ask().content
    with busy.held():
        asked = busy.begin(path=path, Timeout=LONG_ENOUGH_TO_BEGIN)
        busy.wait_for(running=1, pending=0)
        neighbour = busy.begin()
        answer = asked.result()
        assert answer.status_code == TIMEOUT, answer.text
        assert "timeout" in sentence_of(answer)
        assert not neighbour.done()
    assert neighbour.result().content == expected


@pytest.mark.parametrize("path", PATHS)
def test_a_waiting_request_ends_at_its_deadline(busy, path) -> None:
    expected = busy.ask().content
    with busy.occupied():
        neighbour = busy.begin()
        answer = busy.ask(path=path, Timeout=BRIEFLY)
        assert answer.status_code == TIMEOUT, answer.text
        assert "waited" in sentence_of(answer)
    assert neighbour.result().content == expected


@pytest.mark.parametrize(
    ("word", "is_packed"),
    [('"timeout"', False), ('"time\\u006fut"', False), ('"timeout"', True)],
    ids=["plain", "escaped", "gzip"],
)
def test_the_oip_timeout_parameter_is_a_deadline(busy, word, is_packed) -> None:
    body = json.dumps(request(timeout=BRIEFLY_US)).replace('"timeout"', word).encode()
    headers = {"Content-Encoding": "gzip"} if is_packed else {}
    with busy.occupied():
        answer = infer(busy.client, NAME, gzip.compress(body) if is_packed else body, **headers)
    assert answer.status_code == TIMEOUT, answer.text
    assert infer(busy.client, NAME, body).status_code == OK


@pytest.mark.parametrize("is_first", [False, True])
def test_the_timeout_of_a_large_body_is_a_deadline(busy, is_first) -> None:
    sent = request(timeout=BRIEFLY_US) | {"id": "x" * 2**17}
    body = json.dumps(dict(reversed(sent.items())) if is_first else sent)
    with busy.occupied():
        answer = infer(busy.client, NAME, body.encode())
    assert answer.status_code == TIMEOUT, answer.text
    assert infer(busy.client, NAME, body.encode()).status_code == OK


@pytest.mark.parametrize(
    ("header", "parameter"), [(BRIEFLY, 30_000_000), ("30", BRIEFLY_US), (BRIEFLY, 0)]
)
def test_the_shorter_of_two_timeouts_counts(busy, header, parameter) -> None:
    with busy.occupied():
        answer = infer(busy.client, NAME, request(timeout=parameter), Timeout=header)
    assert answer.status_code == TIMEOUT, answer.text


@pytest.mark.parametrize(
    ("sent", "path"),
    [(sent, "predict") for sent in ("", "0", "-1", "soon", "nan", "1_0", "5, 5")]
    + [("soon", "infer")],
)
def test_invalid_timeout_headers_are_refused(busy, path, sent) -> None:
    answer = busy.ask(path=path, Timeout=sent)
    assert answer.status_code == (400 if path == "infer" else 422)
    assert sentence_of(answer) == f"Timeout: expected seconds, a number above 0, got '{sent}'"


@pytest.mark.parametrize("size", [0, 2**17])
@pytest.mark.parametrize("sent", [-1, 1.5, True, "1"])
def test_invalid_timeout_parameters_are_refused(busy, sent, size) -> None:
    answer = infer(busy.client, NAME, request(timeout=sent) | {"id": "x" * size})
    assert answer.status_code == httpx.codes.BAD_REQUEST
    assert sentence_of(answer) == (
        "parameters.timeout: expected microseconds, a whole number; 0 is the service's own limit"
    )


def test_timeouts_are_cut_to_the_services_limit(tmp_path) -> None:
    with busy_service_on(tmp_path, predict_timeout_seconds=1.0) as service, service.held():
        answers = [
            service.begin(),
            service.begin(Timeout="60"),
            service.begin(path="infer", Timeout="inf"),
        ]
        last = infer(service.client, NAME, request(timeout=60_000_000))
        assert [found.result().status_code for found in answers] == [TIMEOUT] * 3
        assert last.status_code == TIMEOUT

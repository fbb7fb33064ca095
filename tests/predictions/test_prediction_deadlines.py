"""Deadlines of predictions hold while they wait and while they run."""

import gzip
import json

import httpx
import pytest
from busy_service import HELD_ROWS, NAME, PATHS, QUICK_ROWS, busy_service_on, sentence_of
from oip_service import in_json, infer

OK, TIMEOUT = httpx.codes.OK, httpx.codes.GATEWAY_TIMEOUT
BRIEFLY = "0.2"
BRIEFLY_US = 200_000
LONG_ENOUGH_TO_BEGIN = "1"


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    with busy_service_on(tmp_path_factory.mktemp("busy")) as service:
        yield service


@pytest.fixture
def expected(service) -> bytes:
    return service.ask(QUICK_ROWS).content


@pytest.mark.parametrize("path", PATHS)
def test_while_it_runs(service, expected, path) -> None:
    with service.held():
        asked = service.begin(HELD_ROWS, path=path, Timeout=LONG_ENOUGH_TO_BEGIN)
        service.wait_for(running=1, pending=0)
        neighbour = service.begin(QUICK_ROWS)
        answer = asked.result()
        assert answer.status_code == TIMEOUT, answer.text
        assert "timeout" in sentence_of(answer)
        assert not neighbour.done()
    assert neighbour.result().content == expected


@pytest.mark.parametrize("path", PATHS)
def test_while_it_waits(service, expected, path) -> None:
    with service.occupied():
        neighbour = service.begin(QUICK_ROWS)
        answer = service.ask(QUICK_ROWS, path=path, Timeout=BRIEFLY)
        assert answer.status_code == TIMEOUT, answer.text
        assert "waited" in sentence_of(answer)
    assert neighbour.result().content == expected
    assert service.ask(QUICK_ROWS, Timeout="30").content == expected


@pytest.mark.parametrize(
    ("word", "is_packed"),
    [('"timeout"', False), ('"time\\u006fut"', False), ('"timeout"', True)],
    ids=["plain", "escaped", "gzip"],
)
def test_by_the_protocols_own_parameter(service, word, is_packed) -> None:
    request = {"inputs": [in_json("x", QUICK_ROWS)], "parameters": {"timeout": BRIEFLY_US}}
    body = json.dumps(request).replace('"timeout"', word).encode()
    headers = {"Content-Encoding": "gzip"} if is_packed else {}
    with service.occupied():
        answer = infer(service.client, NAME, gzip.compress(body) if is_packed else body, **headers)
    assert answer.status_code == TIMEOUT, answer.text
    assert infer(service.client, NAME, body).status_code == OK


@pytest.mark.parametrize(
    ("header", "parameter"), [(BRIEFLY, 30_000_000), ("30", BRIEFLY_US), (BRIEFLY, 0)]
)
def test_of_two_times_the_shorter_counts(service, header, parameter) -> None:
    request = {"inputs": [in_json("x", QUICK_ROWS)], "parameters": {"timeout": parameter}}
    with service.occupied():
        answer = infer(service.client, NAME, request, Timeout=header)
    assert answer.status_code == TIMEOUT, answer.text


@pytest.mark.parametrize(
    ("sent", "path"),
    [(sent, "predict") for sent in ("", "0", "-1", "soon", "nan", "1 s", "1_0", "5, 5")]
    + [("soon", "infer")],
)
def test_what_is_no_time_is_refused_in_one_sentence(service, path, sent) -> None:
    answer = service.ask(QUICK_ROWS, path=path, Timeout=sent)
    assert answer.status_code == (400 if path == "infer" else 422)
    assert sentence_of(answer) == f"Timeout: expected seconds, a number above 0, got '{sent}'"


@pytest.mark.parametrize("sent", [-1, 1.5, True, "1"])
def test_what_is_no_parameter_is_refused_in_one_sentence(service, sent) -> None:
    request = {"inputs": [in_json("x", QUICK_ROWS)], "parameters": {"timeout": sent}}
    answer = infer(service.client, NAME, request)
    assert answer.status_code == httpx.codes.BAD_REQUEST
    assert sentence_of(answer) == (
        "parameters.timeout: expected microseconds, a whole number; 0 is the service's own limit"
    )


def test_more_than_the_service_allows_is_cut(tmp_path) -> None:
    with busy_service_on(tmp_path, predict_timeout_seconds=1.0) as service:
        neighbour = service.begin(QUICK_ROWS)
        assert neighbour.result().status_code == OK
        request = {"inputs": [in_json("x", HELD_ROWS)], "parameters": {"timeout": 60_000_000}}
        with service.held():
            answers = [
                service.begin(HELD_ROWS),
                service.begin(HELD_ROWS, Timeout="60"),
                service.begin(HELD_ROWS, path="infer", Timeout="inf"),
            ]
            assert infer(service.client, NAME, request).status_code == TIMEOUT
            assert [found.result().status_code for found in answers] == [TIMEOUT] * 3

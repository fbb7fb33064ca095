"""Deadlines of predictions hold while they wait and while they run."""

import gzip
import json

import httpx
import pytest
from busy_service import NAME, QUICK_ROWS, busy_service_on, sentence_of
from request_formats import in_json, infer

pytestmark = pytest.mark.process
OK, TIMEOUT = httpx.codes.OK, httpx.codes.GATEWAY_TIMEOUT
BRIEFLY, BRIEFLY_US = "0.2", 200_000
LONG_ENOUGH_TO_BEGIN = "2"


def request(*, timeout: object, **fields: object) -> dict:
    tensors = [in_json("x", QUICK_ROWS)]
    return {"inputs": tensors, "parameters": {"timeout": timeout}, **fields}


@pytest.fixture(scope="module")
def busy(tmp_path_factory):
    """A service whose queue is not full before a deadline has passed."""
    with busy_service_on(tmp_path_factory.mktemp("busy")) as service:
        yield service


@pytest.mark.parametrize("path", ["predict", "infer"])
def test_a_request_ends_at_its_deadline(busy, path) -> None:
    """Running and waiting, and without harm to others."""
    expected = busy.ask().content
    with busy.occupied():
        neighbour = busy.begin()
        waiting = busy.ask(path=path, Timeout=BRIEFLY)
        assert waiting.status_code == TIMEOUT, waiting.text
        assert "waited" in sentence_of(waiting)
    assert neighbour.result().content == expected
    with busy.held():
        running = busy.begin(path=path, Timeout=LONG_ENOUGH_TO_BEGIN)
        busy.wait_for(running=1, pending=0)
        neighbour = busy.begin()
        assert running.result().status_code == TIMEOUT, running.result().text
        assert "timeout" in sentence_of(running.result())
    assert neighbour.result().content == expected


PLAIN = json.dumps(request(timeout=BRIEFLY_US))
LONG = request(timeout=BRIEFLY_US, note="x" * 2**17)
BODIES = {
    "escaped": (PLAIN.replace('"timeout"', '"time\\u006fut"'), {}),
    "gzip": (PLAIN, {"Content-Encoding": "gzip"}),
    "long": (json.dumps(LONG), {}),
    "long, first": (json.dumps(dict(reversed(LONG.items()))), {}),
    # The shorter of two counts, and 0 is none.
    "header": (json.dumps(request(timeout=30_000_000)), {"Timeout": BRIEFLY}),
    "parameter": (PLAIN, {"Timeout": "30"}),
    "zero": (json.dumps(request(timeout=0)), {"Timeout": BRIEFLY}),
}


def test_the_oip_timeout_parameter_is_a_deadline(busy) -> None:
    with busy.occupied():
        for case, (body, headers) in BODIES.items():
            is_packed = "Content-Encoding" in headers
            content = gzip.compress(body.encode()) if is_packed else body.encode()
            answer = infer(busy.client, NAME, content, **headers)
            assert answer.status_code == TIMEOUT, (case, answer.text)
    assert infer(busy.client, NAME, PLAIN.encode()).status_code == OK


def test_invalid_timeouts_are_refused(busy) -> None:
    for value in ("", "0", "-1", "soon", "nan", "1_0", "5, 5"):
        for path, status in (("predict", 422), ("infer", 400)):
            answer = busy.ask(path=path, Timeout=value)
            assert answer.status_code == status
            assert sentence_of(answer).startswith("Timeout: ")
            assert sentence_of(answer).endswith(f"'{value}'")
    for value, size in ((-1, 0), (1.5, 0), (True, 0), ("1", 0), (-1, 2**17)):
        answer = infer(busy.client, NAME, request(timeout=value, note="x" * size))
        assert answer.status_code == httpx.codes.BAD_REQUEST
        assert sentence_of(answer).startswith("parameters.timeout: ")


def test_timeouts_are_cut_to_the_services_limit(tmp_path) -> None:
    with busy_service_on(tmp_path, predict_timeout_seconds=1.0) as service, service.held():
        options = ({}, {"Timeout": "60"}, {"path": "infer", "Timeout": "inf"})
        answers = [service.begin(**headers) for headers in options]
        last = infer(service.client, NAME, request(timeout=60_000_000))
        assert [answer.result().status_code for answer in answers] == [TIMEOUT] * 3
        assert last.status_code == TIMEOUT

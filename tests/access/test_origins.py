"""Requests of other sites' pages, and for other host names, where no key is required."""

import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from hot_fronts import Connection, answer_to, post
from keyed_service import KeyedService, keyed_service

from service.access.origins import AllowedOrigins
from service.errors import UnknownHost

OK, BAD_REQUEST, UNAUTHORIZED, FORBIDDEN, NOT_FOUND, UNPROCESSABLE = 200, 400, 401, 403, 404, 422
BODY = b'{"calibration":"nothing","logits":[[3,0,0]]}'
WRITES = ("/predict", "/v2/models/nothing/infer", "/calibrations/nothing/cancel")


@contextmanager
def opened(folder, **settings) -> Iterator[KeyedService]:
    with keyed_service(folder, first=False, workers=0, **settings) as service:
        yield service


@pytest.fixture(scope="module")
def open_service(tmp_path_factory):
    with opened(tmp_path_factory.mktemp("open")) as service:
        yield service


def head(target: str, *headers: str, method: str = "POST") -> bytes:
    return "\r\n".join(
        [f"{method} {target} HTTP/1.1", *headers, "Content-Length: 2", "", "{}"]
    ).encode()


@pytest.mark.parametrize("target", WRITES)
@pytest.mark.parametrize("host", ["localhost", "127.0.0.1:8000", "[::1]:8000", "LOCALHOST:1"])
def test_requests_for_this_machine_are_answered(open_service, target, host) -> None:
    answer = answer_to(head(target, f"Host: {host}"), open_service.address)
    assert answer.status not in (FORBIDDEN, 500)


@pytest.mark.parametrize("target", [*WRITES, "/calibrations", "/report?calibration=x", "/nothing"])
@pytest.mark.parametrize("host", ["rebound.example", "rebound.example:8000", "localhost.evil", ""])
def test_requests_for_other_hosts_are_refused(open_service, target, host) -> None:
    method = "POST" if target in WRITES else "GET"
    answer = answer_to(head(target, f"Host: {host}", method=method), open_service.address)
    assert answer.status == FORBIDDEN
    assert "HOWSURE_ALLOWED_HOSTS" in answer.body.decode()


def test_health_is_answered_for_any_host(open_service) -> None:
    for target in ("/healthz", "/v2/health/live"):
        sent = head(target, "Host: 10.1.2.3:8000", method="GET")
        assert answer_to(sent, open_service.address).status == OK


@pytest.mark.parametrize("target", WRITES)
@pytest.mark.parametrize(
    "header",
    [
        "Origin: https://evil.example",
        "Origin: http://localhost:3000",
        "Origin: null",
        "Sec-Fetch-Site: cross-site",
        "Sec-Fetch-Site: same-site",
        "Origin: http://localhost:8000\r\nOrigin: https://evil.example",
    ],
)
def test_a_page_of_another_site_changes_nothing(open_service, target, header) -> None:
    answer = answer_to(head(target, "Host: localhost:8000", header), open_service.address)
    assert answer.status == FORBIDDEN
    assert "Pages of other sites" in answer.body.decode()


@pytest.mark.parametrize("target", WRITES)
@pytest.mark.parametrize(
    "header", ["Origin: http://localhost:8000", "Sec-Fetch-Site: same-origin", "X-A: b"]
)
def test_pages_of_the_service_may_send_requests(open_service, target, header) -> None:
    sent = head(target, "Host: localhost:8000", header)
    assert answer_to(sent, open_service.address).status != FORBIDDEN


def test_each_request_of_a_connection_is_checked(open_service) -> None:
    """The head of the one before is remembered, and what it was found to be."""
    with Connection(open_service.address) as connection:
        for _ in range(2):
            connection.send(post("/predict", BODY))
            assert connection.answer().status == NOT_FOUND
        connection.send(post("/predict", BODY, Origin="https://evil.example"))
        assert connection.answer().status == FORBIDDEN


def test_without_keys_only_localhost_and_addresses_are_known() -> None:
    """The rule does not depend on the address that the service listens on."""
    known = AllowedOrigins(())
    for name in (b"localhost:8000", b"127.0.0.1", b"[::1]:80", b"10.1.2.3:8000", b"[fe80::1]"):
        known.check("GET", [(b"host", name)], is_open=True)
    for name in (b"api:8000", b"rebound.example", b"10.1.2.3.example", b"1.2.3", b""):
        with pytest.raises(UnknownHost):
            known.check("GET", [(b"host", name)], is_open=True)
        known.check("GET", [(b"host", name)], is_open=False)


def test_allowed_hosts_are_answered(tmp_path) -> None:
    """Whoever asks: with a key or without."""
    with opened(tmp_path, allowed_hosts="howsure.example,other.example") as service:
        origin = "Origin: https://other.example"
        sent = head("/predict", "Host: howsure.example", origin)
        assert answer_to(sent, service.address).status != FORBIDDEN
        for key in ("none", service.make().text):
            header = f"Authorization: Bearer {key}"
            for host, status in (("howsure.example:80", OK), ("evil.example", FORBIDDEN)):
                sent = head("/calibrations", f"Host: {host}", header, method="GET")
                assert said_once_known(service, sent).status == status


def test_a_request_with_a_key_may_have_any_origin(tmp_path) -> None:
    """A page cannot have a browser send one."""
    with keyed_service(tmp_path, workers=0) as service:
        header = f"Authorization: Bearer {service.make().text}"
        sent = head("/predict", "Host: proxied.example", "Origin: https://evil.example", header)
        assert said_once_known(service, sent).status in (BAD_REQUEST, UNPROCESSABLE)


def said_once_known(service, sent: bytes):
    """Ask until a key that was just made is known."""
    while (answer := answer_to(sent, service.address)).status == UNAUTHORIZED:
        time.sleep(0.1)
    return answer

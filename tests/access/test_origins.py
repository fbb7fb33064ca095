"""Requests of other sites' pages, and for other host names, where no key is required."""

from collections.abc import Iterator

import pytest
from hot_fronts import Connection, answer_to, post
from keyed_service import KeyedService, keyed_service
from runner_children import wait_until

from service.access.origins import AllowedOrigins
from service.errors import UnknownHost

OK, UNAUTHORIZED, FORBIDDEN, NOT_FOUND = 200, 401, 403, 404
BODY = b'{"calibration":"nothing","logits":[[3,0,0]]}'
WRITES = ("/predict", "/v2/models/nothing/infer", "/calibrations/nothing/cancel")


@pytest.fixture(scope="module")
def open_service(tmp_path_factory) -> Iterator[KeyedService]:
    with keyed_service(tmp_path_factory.mktemp("open"), first=False, workers=0) as service:
        yield service


def head(target: str, *headers: str, method: str = "POST") -> bytes:
    lines = [f"{method} {target} HTTP/1.1", *headers, "Content-Length: 2", "", "{}"]
    return "\r\n".join(lines).encode()


def status_of(service, target: str, *headers: str, method: str = "POST") -> int:
    return answer_to(head(target, *headers, method=method), service.address).status


OWN = ("Origin: http://localhost:8000", "Sec-Fetch-Site: same-origin", "X-A: b")
FOREIGN = ["Origin: https://evil.example", "Origin: http://localhost:3000", "Origin: null"]
FOREIGN += ["Sec-Fetch-Site: cross-site", "Sec-Fetch-Site: same-site", f"{OWN[0]}\r\n{FOREIGN[0]}"]


@pytest.mark.parametrize("target", WRITES)
def test_pages_of_this_machine_are_answered_and_no_others(open_service, target) -> None:
    for host in ("localhost", "127.0.0.1:8000", "[::1]:8000", "LOCALHOST:1"):
        assert status_of(open_service, target, f"Host: {host}") not in (FORBIDDEN, 500)
    for header in (*OWN, *FOREIGN):
        status = status_of(open_service, target, "Host: localhost:8000", header)
        assert (status == FORBIDDEN) == (header in FOREIGN), header


def test_requests_for_other_hosts_are_refused(open_service) -> None:
    for target in (*WRITES, "/calibrations", "/report?calibration=x", "/nothing"):
        method = "POST" if target in WRITES else "GET"
        for host in ("rebound.example", "localhost.evil", ""):
            answer = answer_to(head(target, f"Host: {host}", method=method), open_service.address)
            assert answer.status == FORBIDDEN
            assert "HOWSURE_ALLOWED_HOSTS" in answer.body.decode()
    for target in ("/healthz", "/v2/health/live"):
        assert status_of(open_service, target, "Host: 10.1.2.3:8000", method="GET") == OK


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


def test_allowed_hosts_are_answered_and_a_request_with_a_key_may_have_any_origin(tmp_path) -> None:
    """A page cannot have a browser send a key."""
    hosts = "howsure.example,other.example"
    with keyed_service(tmp_path, first=False, workers=0, allowed_hosts=hosts) as service:
        origin = "Origin: https://other.example"
        assert status_of(service, "/predict", "Host: howsure.example", origin) != FORBIDDEN

        def status_at(name: str, header: str = "X-A: b") -> int:
            return status_of(service, "/calibrations", f"Host: {name}", header, method="GET")

        assert (status_at("howsure.example:80"), status_at("evil.example")) == (OK, FORBIDDEN)
        header = f"Authorization: Bearer {service.make().text}"
        assert wait_until(lambda: status_at("howsure.example") == UNAUTHORIZED)
        assert status_at("howsure.example", header) == OK
        assert status_at("evil.example", header) == FORBIDDEN
        headers = ("Host: howsure.example", "Origin: https://evil.example", header)
        assert status_of(service, "/predict", *headers) in (400, 422)

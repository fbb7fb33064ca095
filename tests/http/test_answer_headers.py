"""Headers of all responses, of every route and for every error."""

import asyncio
import re
from collections.abc import Iterator

import httpx
import pytest
from fastapi import FastAPI
from hot_fronts import Connection, answer_to, request
from keyed_service import KeyedService, keyed_service, logits_of
from running_service import Scraped, calibrated

from service.access.route_table import ROUTES
from service.http import problems, request_record
from service.http.request_record import RequestLog
from service.metrics.metrics import Metrics

ALWAYS = {
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
}
PAGES_OF_OTHERS = {"Origin": "https://evil.example", "Access-Control-Request-Method": "POST"}
NAMED = re.compile(r"[0-9a-f]{20}")


@pytest.fixture(scope="module")
def service(tmp_path_factory) -> Iterator[KeyedService]:
    with keyed_service(tmp_path_factory.mktemp("keyed"), receive_seconds=0.5) as found:
        yield found


@pytest.fixture(scope="module")
def known(service) -> httpx.Client:
    client = service.client(service.make_known().text)
    calibrated(client, {"name": "digits"}, calibration=logits_of())
    return client


def assert_complete(headers, path: str = "") -> None:
    # With `no-referrer` browsers would hide from our own forms' requests where they come from.
    is_page = headers.get("content-type", "").startswith("text/html") and path != "/docs"
    for name, value in (ALWAYS | ({"referrer-policy": "same-origin"} if is_page else {})).items():
        assert headers[name] == value
    policy = headers["content-security-policy"]
    assert policy.startswith("default-src 'none'; ")
    assert "frame-ancestors 'none'" in policy
    assert "unsafe" not in policy
    is_asset = path.startswith("/static")
    assert headers["cache-control"] == ("public, max-age=3600" if is_asset else "no-store")
    assert headers["x-request-id"]
    assert "server" not in headers
    assert not any(name.startswith("access-control") for name in headers)


def test_responses_of_every_route_have_the_headers(service, known) -> None:
    """Of what is there, asked by a page of others."""
    for method, path in ROUTES:
        target = path.replace("{path:path}", "swagger-ui.css").replace("{model_version}", "1")
        target = re.sub(r"\{(calibration_id|model_name|evaluation_name:path)\}", "digits", target)
        with known.stream(method, target, headers=PAGES_OF_OTHERS) as answer:
            assert_complete(answer.headers, target)
            assert answer.status_code < 500


@pytest.mark.parametrize("method", ["GET", "HEAD", "OPTIONS", "PUT"])
def test_responses_of_every_kind_have_the_headers(service, known, method) -> None:
    """With a key and without, of what is not there, and of methods that are not supported."""
    for target in ("/calibrations/none", "/healthz", "/docs", "/nothing"):
        for client in (known, service.client()):
            answer = client.request(method, target, headers=PAGES_OF_OTHERS)
            assert_complete(answer.headers, target)
            assert answer.status_code < 500


# Refused on the connection.
RAW = [
    (b"nonsense\r\n\r\n", 400),
    (request("GET", "/nothing"), 401),
    (request("GET", "/healthz", X="x" * 100_000), 431),
    (request("POST", "/predict", Content_Length="99999999"), 401),
    (b"GET /healthz HTTP/1.1\r\n", 408),
]


def test_refusals_have_the_headers(service, known) -> None:
    for sent, status in RAW:
        answer = answer_to(sent, service.address)
        assert answer.status == status
        assert_complete(answer.headers)
        assert answer.json()["request_id"] == answer.headers["x-request-id"]
    for answer, status in (
        (known.get("/predict"), 405),
        (known.post("/nothing"), 404),
        (known.post("/calibrations/none/cancel", content=bytes(100_000)), 413),
        (known.post("/predict", content=iter([bytes(2**20)] * 33)), 413),
    ):
        assert answer.status_code == status
        assert_complete(answer.headers)
        assert answer.json()["request_id"] == answer.headers["x-request-id"]


def test_a_failure_of_the_service_shows_no_details() -> None:
    """The log has the reason, by the name that the answer has."""
    app, metrics = FastAPI(), Metrics()
    problems.install(app)
    request_record.install(app, metrics=metrics, request_log=RequestLog("none"))

    @app.get("/fails")
    def fails() -> None:
        raise ZeroDivisionError("of /home/somebody")

    async def ask() -> httpx.Response:
        transport = httpx.ASGITransport(app, raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
            return await client.get("/fails")

    answer = asyncio.run(ask())
    assert answer.status_code == httpx.codes.INTERNAL_SERVER_ERROR
    assert_complete(answer.headers)
    assert NAMED.fullmatch(answer.json()["request_id"])
    assert answer.headers["x-request-id"] == answer.json()["request_id"]
    assert not re.search("somebody|Zero", answer.text)
    counted = {"method": "GET", "route": "/fails", "reason": "internal-error"}
    assert Scraped(metrics.render().decode())("failures_total", **counted) == 1


@pytest.mark.parametrize("path", ["/predict", "/calibrations/none/cancel"])
def test_a_short_plain_request_id_of_the_client_is_kept(known, path) -> None:
    made = set()
    for sent in (b"a", b"Trace-1.2_3", b"x" * 64, b"", b"x" * 65, b"a b", b"a;b", b"\xe9", b"<b>"):
        name = known.post(path, headers={"X-Request-Id": sent}).headers["x-request-id"]
        if name.encode() != sent:
            assert NAMED.fullmatch(name)
            made.add(name)
    assert len(made) == 6


def test_pipelined_requests_have_ids_of_their_own(known, service) -> None:
    key = {"Content_Length": "0", "Authorization": known.headers["authorization"]}
    one = request("POST", "/predict", **key)
    with Connection(service.address) as connection:
        connection.send(one + request("POST", "/predict", X_Request_Id="mine", **key) + one)
        names = [connection.answer().headers["x-request-id"] for _ in range(3)]
    assert names[1] == "mine"
    assert len(set(names)) == 3


def test_the_page_of_the_documentation_has_no_inline_script(known) -> None:
    """It needs no other server."""
    page = known.get("/docs")
    assert "script-src 'self';" in page.headers["content-security-policy"]
    forbidden = r"https://|<script>|<style|\son\w+=|\sstyle=|javascript:"
    assert re.findall(forbidden, page.text) == []
    sources = re.findall(r'(?:src|href)="([^"]+)"', page.text)
    assert len(sources) > 3
    for source in sources:
        asset = known.get(source)
        assert asset.status_code == httpx.codes.OK
        assert_complete(asset.headers, source)
    assert known.get("/static/../../settings.py").status_code == httpx.codes.NOT_FOUND

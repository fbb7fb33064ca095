"""Requests and rows of a tenant are limited on all routes."""

from collections.abc import Iterator
from dataclasses import dataclass

import httpx
import pytest
from hot_fronts import Answer, Connection, post, request
from keyed_service import KeyedService, keyed_service, logits_of
from runner_children import wait_until
from running_service import DIGITS_PARTS, calibrated

import service.http.connection

pytestmark = pytest.mark.process

OK, TOO_MANY = httpx.codes.OK, httpx.codes.TOO_MANY_REQUESTS
UNAUTHORIZED = httpx.codes.UNAUTHORIZED
PREDICT = b'{"calibration":"outputs","logits":[%b]}'
INFER = b'{"inputs":[{"name":"logits","datatype":"FP32","shape":[1,3],"data":[3,0,0]}]}'


@dataclass
class Tenant:
    """A tenant with a calibration of outputs and one of a model."""

    service: KeyedService
    name: str
    key: str
    client: httpx.Client

    def limit(self, **limits: int) -> None:
        self.service.limit(self.client, self.name, **limits)

    def predict(self, rows: int = 1, path: str = "/predict", body: bytes = b"") -> bytes:
        body = body or PREDICT % b",".join([b"[3,0,0]"] * rows)
        key = f"Bearer {self.key}"
        return post(path, body, Content_Type="application/json", Authorization=key)

    def flood(self, sent: bytes, *, refusals: int = 1) -> list[Answer]:
        """Send the request again and again until so many were refused; return the answers."""
        answers: list[Answer] = []
        with Connection(self.service.address) as connection:
            while sum(answer.status == TOO_MANY for answer in answers) < refusals:
                connection.send(sent)
                answers.append(connection.answer())
        return answers


@pytest.fixture(scope="module")
def tenants(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Tenant]]:
    no_limits = {"max_tenant_requests_per_second": 0, "max_tenant_rows_per_minute": 0}
    with keyed_service(tmp_path_factory.mktemp("limited"), **no_limits) as service:
        made = {}
        for name in ("limited", "other"):
            key = service.make_known(name).text
            made[name] = Tenant(service, name, key, service.client(key))
            calibrated(made[name].client, {"name": "outputs"}, calibration=logits_of())
        yield made


@pytest.fixture
def limited(tenants: dict[str, Tenant]) -> Iterator[Tenant]:
    yield tenants["limited"]
    tenants["limited"].limit(requests_per_second=0, rows_per_minute=0)


def check_refused(answer: Answer, *, limit: int) -> None:
    assert answer.status == TOO_MANY
    assert answer.json()["type"] == "urn:howsure:problem:request-limit-reached"
    assert answer.headers["ratelimit-policy"] == f'"requests";q={limit};w=1'
    assert answer.headers["retry-after"] in ("1", "2")
    assert answer.headers["ratelimit"] == f'"requests";r=0;t={answer.headers["retry-after"]}'


@pytest.mark.parametrize("way", ["prediction", "other route"])
def test_requests_beyond_the_limit_are_refused(
    limited: Tenant, tenants, way: str, monkeypatch
) -> None:
    """Limits change on connections that are open, and hold for one tenant alone.

    Every turn of the server ends between a head and its body, as may happen when it is busy.
    """
    monkeypatch.setattr(service.http.connection, "TURN_SECONDS", -1.0)
    listing = request("GET", "/calibrations", Authorization=f"Bearer {limited.key}")
    routes = {"prediction": limited.predict(), "other route": listing}
    with Connection(limited.service.address) as connection:

        def refused() -> list[Answer]:
            connection.send(routes[way] * 20)
            answers = [connection.answer() for _ in range(20)]
            return [answer for answer in answers if answer.status != OK]

        assert refused() == []
        limited.limit(requests_per_second=2)
        while not (answers := refused()):
            pass
        check_refused(answers[0], limit=2)
    assert tenants["other"].client.get("/calibrations").status_code == OK
    if way == "prediction":  # below /v2 the refusal is one of the protocol
        path = "/v2/models/outputs/infer"
        last = limited.flood(limited.predict(path=path, body=INFER))[-1]
        assert "2 requests per second" in last.json()["error"]
        assert {"retry-after", "ratelimit"} <= last.headers.keys()


def test_a_request_beyond_the_limit_is_refused_before_its_body(limited: Tenant) -> None:
    limited.limit(requests_per_second=1)
    head = limited.predict(body=b"x" * 1_000_000)[:-1_000_000]

    def is_refused() -> bool:
        limited.flood(limited.predict())
        with Connection(limited.service.address) as connection:
            connection.send(head)
            connection.socket.settimeout(0.2)
            try:
                check_refused(connection.answer(), limit=1)
            except TimeoutError:
                return False  # a second had begun: the body would have been taken
            return True

    assert wait_until(is_refused)


def test_rows_count_together_for_all_keys_and_protocols(limited: Tenant) -> None:
    limited.limit(rows_per_minute=100)
    second = limited.service.client(limited.service.make_known("limited").text)
    infer = {"content": INFER, "headers": {"Content-Type": "application/json"}}
    for status in (OK, TOO_MANY):
        assert second.post("/v2/models/outputs/infer", **infer).status_code == status
        limited.flood(limited.predict(rows=30))
        limited.flood(limited.predict())


@pytest.mark.parametrize("of", ["model", "outputs"])
def test_all_rows_of_a_request_count(limited: Tenant, of: str) -> None:
    """They are guessed, or not even that, before they are read; what they were is what counts."""
    sent = limited.predict(rows=60)
    if of == "model":
        calibrated(limited.client, {"name": "digits"}, **DIGITS_PARTS)
        rows = b",".join([b"[%b]" % b",".join([b"1.5"] * 64)] * 60)
        sent = limited.predict(body=b'{"calibration":"digits","inputs":[%b]}' % rows)
        # The service learns from answers what to guess.
        with Connection(limited.service.address) as connection:
            for _ in range(20):
                connection.send(sent)
                assert connection.answer().status == OK
    limit = 1200 if of == "model" else 1201  # another number has a count of its own
    limited.limit(rows_per_minute=limit)
    answers = limited.flood(sent, refusals=20)
    n_rows = 60 * sum(answer.status == OK for answer in answers)
    assert limit * 0.85 <= n_rows <= limit + 120
    refused = next(answer for answer in answers if answer.status != OK)
    assert refused.json()["type"] == "urn:howsure:problem:row-limit-reached"
    assert refused.headers["ratelimit-policy"] == f'"rows";q={limit};w=60'
    assert 1 <= int(refused.headers["retry-after"]) <= 120
    assert limited.client.get("/usage").json()["rows"]["used"] >= limit * 0.85

"""Requests and rows of a tenant are held to its limits, whichever way they take."""

import re
import time
from collections.abc import Iterator
from dataclasses import dataclass

import httpx
import pytest
from hot_fronts import Answer, Connection, post
from keyed_service import KeyedService, keyed_service, logits_of
from running_service import calibrate, digits

from service.access.api_keys import limit_tenant

OK, TOO_MANY = httpx.codes.OK, httpx.codes.TOO_MANY_REQUESTS
# A guard against hanging.
WITHIN_SECONDS = 60.0
REQUEST_LIMIT = "urn:howsure:problem:request-limit-reached"
ROW_LIMIT = "urn:howsure:problem:row-limit-reached"


@dataclass
class Tenant:
    service: KeyedService
    name: str
    key: str
    client: httpx.Client

    def limit(self, **changes: int | None) -> None:
        """Set limits, and wait until the service knows."""
        with self.service.database() as database:
            limit_tenant(database, self.name, changes)
        until = time.monotonic() + WITHIN_SECONDS
        while True:
            # What is asked is itself a request.
            found = self.client.get("/usage")
            names = {"requests_per_second": "requests", "rows_per_minute": "rows"}
            if found.status_code == OK and all(
                found.json()[names[name]]["limit"] == (value or None)
                for name, value in changes.items()
            ):
                return
            assert time.monotonic() < until
            time.sleep(0.05)

    def predict(self, n_rows: int = 1, path: str = "/predict", body: bytes = b"") -> bytes:
        rows = ",".join(["[3,0,0]"] * n_rows)
        body = body or b'{"calibration":"outputs","logits":[%b]}' % rows.encode()
        key = f"Bearer {self.key}"
        return post(path, body, Content_Type="application/json", Authorization=key)


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KeyedService]:
    no_limits = {"max_tenant_requests_per_second": 0, "max_tenant_rows_per_minute": 0}
    with keyed_service(tmp_path_factory.mktemp("limited"), **no_limits) as found:
        yield found


@pytest.fixture(scope="module")
def tenants(service: KeyedService) -> dict[str, Tenant]:
    """Two tenants with a calibration of outputs each."""
    made = {}
    for name in ("limited", "other"):
        key = service.make(name).text
        made[name] = tenant = Tenant(service, name, key, service.client(key))
        tenant.limit(requests_per_second=0)
        parts = [
            ("calibration", ("c.csv", logits_of())),
            ("config", (None, '{"name": "outputs"}')),
        ]
        answer = tenant.client.post("/calibrate", files=parts, headers={"Prefer": "wait=30"})
        assert answer.json()["status"] == "succeeded"
    return made


@pytest.fixture
def limited(tenants: dict[str, Tenant]) -> Iterator[Tenant]:
    yield tenants["limited"]
    with tenants["limited"].service.database() as database:
        limit_tenant(database, "limited", {"requests_per_second": 0, "rows_per_minute": 0})
    until = time.monotonic() + WITHIN_SECONDS
    while not _is_free(tenants["limited"].client):
        assert time.monotonic() < until
        time.sleep(0.05)


def _is_free(client: httpx.Client) -> bool:
    found = client.get("/usage")
    return found.status_code == OK and not any(
        found.json()[name]["limit"] for name in ("requests", "rows")
    )


def flood(tenant: Tenant, request: bytes, *, refusals: int = 1) -> tuple[list[Answer], float]:
    """Ask again and again until so many were refused; return the answers and the seconds."""
    answers: list[Answer] = []
    began, n_refused = time.monotonic(), 0
    with Connection(tenant.service.address) as connection:
        while n_refused < refusals:
            connection.send(request)
            answers.append(connection.answer())
            n_refused += answers[-1].status == TOO_MANY
    return answers, time.monotonic() - began


def check_refused(answer: Answer, *, limit: int) -> None:
    assert answer.status == TOO_MANY
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.json()["type"] == REQUEST_LIMIT
    assert answer.headers["ratelimit-policy"] == f'"requests";q={limit};w=1'
    seconds = int(answer.headers["retry-after"])
    assert 1 <= seconds <= 2
    assert answer.headers["ratelimit"] == f'"requests";r=0;t={seconds}'


@pytest.mark.parametrize("way", ["hot", "routes"])
def test_of_a_flood_as_many_are_answered_as_may_be(limited: Tenant, tenants, way: str) -> None:
    limited.limit(requests_per_second=20)
    request = limited.predict()
    if way == "routes":
        head = f"GET /calibrations HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer {limited.key}\r\n"
        request = f"{head}\r\n".encode()
    time.sleep(2.1)  # nothing counts of what was asked until the limit was known
    answers, seconds = flood(limited, request, refusals=200)
    answered = [answer for answer in answers if answer.status == OK]
    assert 20 <= len(answered) <= 20 * 1.02 * (seconds + 1) + 1
    check_refused(answers[-1], limit=20)
    assert tenants["other"].client.get("/calibrations").status_code == OK


def test_all_ways_and_all_keys_count_together(limited: Tenant) -> None:
    second = limited.service.make("limited")
    client = limited.service.client(second.text)
    limited.limit(requests_per_second=3)
    until = time.monotonic() + WITHIN_SECONDS
    while client.get("/usage").status_code == httpx.codes.UNAUTHORIZED:
        assert time.monotonic() < until
    seconds = 1.0
    while seconds >= 1:  # what takes longer on a busy machine is within the limit
        time.sleep(2.1)
        began = time.monotonic()
        statuses = []
        with Connection(limited.service.address) as connection:
            # The second comes while the first is under way, and takes another way.
            connection.send(limited.predict() * 2)
            statuses += [connection.answer().status for _ in range(2)]
        statuses += [client.get("/calibrations").status_code for _ in range(4)]
        seconds = time.monotonic() - began
    assert statuses.count(OK) in (3, 4)  # 4, where a second ended meanwhile
    assert statuses[:3] == [OK] * 3


def test_who_has_nothing_left_is_refused_before_the_body_comes(limited: Tenant) -> None:
    limited.limit(requests_per_second=1)
    key = f"Authorization: Bearer {limited.key}"
    head = f"POST /predict HTTP/1.1\r\nHost: h\r\n{key}\r\nContent-Length: 1000000\r\n\r\n".encode()
    for _ in range(5):
        flood(limited, limited.predict())
        with Connection(limited.service.address) as connection:
            connection.send(head)
            connection.socket.settimeout(0.2)
            try:
                check_refused(connection.answer(), limit=1)
            except TimeoutError:
                continue  # a second had begun: it would have been taken
            return
    raise AssertionError("none was refused")


def test_below_v2_it_is_said_in_the_words_of_the_protocol(limited: Tenant) -> None:
    limited.limit(requests_per_second=1)
    body = b'{"inputs":[{"name":"logits","datatype":"FP32","shape":[1,3],"data":[3,0,0]}]}'
    request = limited.predict(path="/v2/models/outputs/infer", body=body)
    answers, _ = flood(limited, request)
    refused = answers[-1]
    assert refused.status == TOO_MANY
    assert "1 requests per second" in refused.json()["error"]
    assert refused.headers["retry-after"]
    assert "ratelimit" in refused.headers


def test_limits_change_on_connections_that_are_open(limited: Tenant) -> None:
    with Connection(limited.service.address) as connection:
        connection.send(limited.predict())
        assert connection.answer().status == OK

        def are_refused() -> bool:
            connection.send(limited.predict() * 5)
            return TOO_MANY in [connection.answer().status for _ in range(5)]

        assert not are_refused()
        limited.limit(requests_per_second=1)
        assert are_refused()


@pytest.fixture(scope="module")
def digits_model(tenants: dict[str, Tenant]) -> str:
    parts = {"model": digits("model.onnx"), "calibration": digits("calibration.npz")}
    made = calibrate(tenants["limited"].client, config='{"name": "digits"}', **parts)
    assert made.json()["status"] == "succeeded", made.text
    return "digits"


@pytest.mark.parametrize("of", ["model", "outputs"])
def test_rows_are_counted_however_many_a_request_has(
    limited: Tenant, digits_model: str, of: str
) -> None:
    """They are guessed, or not even that, before they are read; what they were is what counts."""
    many = limited.predict(n_rows=60)
    if of == "model":
        rows = ",".join([f"[{','.join(['1.5'] * 64)}]"] * 60).encode()
        body = b'{"calibration":"digits","inputs":[%b]}' % rows
        many = limited.predict(body=body)
        # What it guesses of such bodies it learns from answers.
        with Connection(limited.service.address) as connection:
            for _ in range(50):
                connection.send(many)
                assert connection.answer().status == OK
    limit = 1200 if of == "model" else 1201  # another number has a count of its own
    limited.limit(rows_per_minute=limit)
    # What comes after the first refusal is refused as well.
    answers, _ = flood(limited, many, refusals=50)
    n_rows = 60 * sum(answer.status == OK for answer in answers)
    assert limit * 0.85 <= n_rows <= limit + 120
    refused = next(answer for answer in answers if answer.status != OK)
    assert refused.status == TOO_MANY
    assert refused.json()["type"] == ROW_LIMIT
    assert re.fullmatch(rf'"rows";q={limit};w=60', refused.headers["ratelimit-policy"])
    assert 1 <= int(refused.headers["retry-after"]) <= 120
    used = limited.client.get("/usage").json()["rows"]
    assert used["limit"] == limit
    assert used["used"] >= limit * 0.85


def test_refusals_are_counted_by_their_reason(limited: Tenant, tenants) -> None:
    limited.limit(requests_per_second=1)
    flood(limited, limited.predict())
    text = tenants["other"].client.get("/metrics").text
    assert re.search(r'howsure_failures_total\{.*reason="request-limit-reached".*\} [1-9]', text)
    assert "limited" not in re.sub(r"outputs", "", text).replace("rate_limited", "")


def test_bad_keys_of_an_address_are_refused_otherwise_after_some(tmp_path) -> None:
    with keyed_service(tmp_path, max_bad_keys_per_minute=30) as service:
        good = service.client(service.make().text)
        until = time.monotonic() + WITHIN_SECONDS
        while good.get("/calibrations").status_code != OK:
            # Until the service knows the key it is none.
            assert time.monotonic() < until
            time.sleep(0.3)
        bad = service.client("cal_x")
        # By both ways that requests take.
        statuses = [
            asked.status_code
            for _ in range(20)
            for asked in (bad.get("/calibrations"), bad.post("/predict", content=b"{}"))
        ]
        assert statuses == sorted(statuses)
        assert 15 < statuses.count(httpx.codes.UNAUTHORIZED) <= 30
        assert statuses[-1] == TOO_MANY
        refused = bad.get("/calibrations")
        assert refused.json()["type"] == "urn:howsure:problem:too-many-bad-keys"
        assert 1 <= int(refused.headers["retry-after"]) <= 60
        assert good.get("/calibrations").status_code == OK
        assert service.client().get("/calibrations").status_code == httpx.codes.UNAUTHORIZED

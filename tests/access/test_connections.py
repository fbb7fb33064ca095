"""Keys on connections: checked before a body, in memory, and for each request."""

import threading
from collections.abc import Iterator

import httpx
import pytest
from databases import listening
from hot_fronts import Connection, answer_to, post, request
from keyed_service import KeyedService, keyed_service, logits_of
from runner_children import wait_until
from running_service import calibrated
from sqlalchemy import Engine

from service.access.api_keys import revoke_key

OK, UNAUTHORIZED = httpx.codes.OK, httpx.codes.UNAUTHORIZED
BODY = b'{"calibration":"calibration","logits":[[3,0,0]]}'


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KeyedService]:
    with keyed_service(tmp_path_factory.mktemp("keyed")) as found:
        yield found


@pytest.fixture(scope="module")
def key(service: KeyedService) -> str:
    """A key whose tenant has a calibration."""
    text = service.make_known("ours").text
    calibrated(service.client(text), calibration=logits_of())
    return text


def predict(key: str | None) -> bytes:
    given = {} if key is None else {"Authorization": f"Bearer {key}"}
    return post("/predict", BODY, Content_Type="application/json", **given)


@pytest.mark.parametrize("path", ["/predict", "/v2/models/calibration/infer", "/calibrate"])
def test_the_refusal_comes_before_any_of_the_body(service, path: str) -> None:
    for headers in ({}, {"Authorization": "Bearer cal_x"}, {"Expect": "100-continue"}):
        sent = request("POST", path, Content_Length="1000000", **headers)
        answer = answer_to(sent, service.address)
        assert answer.status == UNAUTHORIZED
        assert answer.headers["www-authenticate"] == 'Bearer realm="howsure"'


def test_each_request_of_a_connection_is_checked(service, key: str) -> None:
    """Also one that comes while another is under way."""
    with Connection(service.address) as connection:
        for sent, expected in (
            ([key], [OK]),
            ([key, key, None], [OK, OK, UNAUTHORIZED]),
            ([None], [UNAUTHORIZED]),
        ):
            connection.send(b"".join(predict(one) for one in sent))
            assert [connection.answer().status for _ in sent] == expected


def test_a_key_in_the_query_or_another_header_is_none(service, key: str) -> None:
    client, bearer = service.client(), f"Bearer {key}"
    options = {"params": {"api_key": key, "access_token": key, "authorization": bearer}}
    options["headers"] = {"X-API-Key": key, "Proxy-Authorization": bearer}
    options["headers"]["Cookie"] = f"authorization={bearer}"
    assert client.get("/calibrations", **options).status_code == UNAUTHORIZED
    assert client.post("/predict", content=BODY, **options).status_code == UNAUTHORIZED


def test_no_request_asks_the_database_for_its_key(service, key: str) -> None:
    """Keys are read by the clock, in a thread of their own."""
    threads = []

    def listen(_connection, _cursor, statement: str, *_: object) -> None:
        if "api_key" in statement:
            threads.append(threading.current_thread().name)

    with listening(Engine, "before_cursor_execute", listen):
        with Connection(service.address) as connection:
            listing = request("GET", "/models", Authorization=f"Bearer {key}")
            for sent in [predict(key), listing] * 20:
                connection.send(sent)
                assert connection.answer().status == OK
        assert wait_until(lambda: threads)
    assert [name for name in threads if not name.startswith("keys")] == []


def test_a_key_that_is_revoked_ends_on_connections_that_are_open(service, key: str) -> None:
    made = service.make_known("ours")
    with Connection(service.address) as connection:
        connection.send(predict(made.text))
        assert connection.answer().status == OK
        with service.database() as database:
            revoke_key(database, made.id)

        def is_refused() -> bool:
            connection.send(predict(made.text))
            return connection.answer().status == UNAUTHORIZED

        assert wait_until(is_refused)
    assert service.client(made.text).get("/calibrations").status_code == UNAUTHORIZED
    assert service.client(key).get("/calibrations").status_code == OK

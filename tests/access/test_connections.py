"""Keys on connections: looked at before a body, remembered without a question, and revoked."""

import socket
import time
from collections.abc import Iterator

import httpx
import pytest
from hot_fronts import Connection, hot_front, post
from keyed_service import KeyedService, keyed_service, logits_of
from sqlalchemy import Engine, event

from service.access.api_keys import revoke_key

OK, UNAUTHORIZED, FORBIDDEN = httpx.codes.OK, httpx.codes.UNAUTHORIZED, httpx.codes.FORBIDDEN
# As docs/keys.md promises; what is revoked is known within about one.
# A guard against hanging.
WITHIN_SECONDS = 60.0
BODY = b'{"calibration":"calibration","logits":[[3,0,0]]}'
PATHS = ("/predict", "/v2/models/calibration/infer", "/calibrate")


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KeyedService]:
    with keyed_service(tmp_path_factory.mktemp("keyed")) as found:
        yield found


@pytest.fixture(scope="module")
def key(service: KeyedService) -> str:
    """A key whose tenant has a calibration."""
    text = service.make("ours").text
    client = service.client(text)
    until(lambda: client.get("/calibrations").status_code == OK)
    made = client.post(
        "/calibrate",
        files=[("calibration", ("c.csv", logits_of()))],
        headers={"Prefer": "wait=30"},
    )
    assert made.json()["status"] == "succeeded"
    return text


def until(is_so) -> None:
    deadline = time.monotonic() + WITHIN_SECONDS
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def predict(key: str | None, path: str = "/predict", body: bytes = BODY) -> bytes:
    given = {} if key is None else {"Authorization": f"Bearer {key}"}
    return post(path, body, Content_Type="application/json", **given)


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("header", ["", "Authorization: Bearer cal_x\r\n"])
def test_the_answer_comes_before_any_of_the_body(service, path: str, header: str) -> None:
    head = f"POST {path} HTTP/1.1\r\nHost: h\r\n{header}Content-Length: 1000000\r\n\r\n"
    with Connection(service.address) as connection:
        connection.send(head.encode())
        answer = connection.answer()
    assert answer.status == UNAUTHORIZED
    assert answer.headers["www-authenticate"] == 'Bearer realm="howsure"'


@pytest.mark.parametrize("path", PATHS)
def test_who_waits_to_be_told_to_go_on_is_not_told_so(service, path: str) -> None:
    head = (
        f"POST {path} HTTP/1.1\r\nHost: h\r\nContent-Length: 9\r\nExpect: 100-continue\r\n\r\n"
    ).encode()
    with Connection(service.address) as connection:
        connection.send(head)
        assert connection.answer().status == UNAUTHORIZED


def test_a_key_is_for_the_requests_that_send_it(service, key: str) -> None:
    """On one connection, with and without: each is looked at for itself."""
    with Connection(service.address) as connection:
        for _ in range(3):
            connection.send(predict(key))
            assert connection.answer().status == OK
        connection.send(predict(None))
        assert connection.answer().status == UNAUTHORIZED


def test_requests_behind_others_are_looked_at_as_well(service, key: str) -> None:
    """A request that comes while another is under way takes another way through the service."""
    with Connection(service.address) as connection:
        connection.send(predict(key) + predict(key) + predict(None))
        assert [connection.answer().status for _ in range(3)] == [OK, OK, UNAUTHORIZED]


def test_a_key_in_the_query_or_another_header_is_none(service, key: str) -> None:
    client = service.client()
    for options in (
        {"params": {"api_key": key, "access_token": key, "authorization": f"Bearer {key}"}},
        {"headers": {"X-API-Key": key, "Proxy-Authorization": f"Bearer {key}"}},
        {"headers": {"Cookie": f"authorization=Bearer {key}"}},
    ):
        assert client.get("/calibrations", **options).status_code == UNAUTHORIZED
        assert client.post("/predict", content=BODY, **options).status_code == UNAUTHORIZED


def test_nothing_that_is_sent_in_its_place_fails_otherwise(service) -> None:
    """Whatever bytes there are: never an error of the service."""
    values = [b"\xff\xfe", "Bearer cal_é".encode(), b"Bearer " + b"x" * 60_000, b"Bearer  ", b","]
    for path in ("/predict", "/calibrations/digits/cancel"):
        for value in values:
            head = f"POST {path} HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\nAuthorization: "
            with Connection(service.address) as connection:
                connection.send(head.encode() + value + b"\r\n\r\n")
                assert connection.answer().status == UNAUTHORIZED


def test_no_request_asks_the_database_for_its_key(service, key: str) -> None:
    """A few are asked by the clock, whatever number of requests there is."""
    said = []
    with Connection(service.address) as connection:
        connection.send(predict(key))
        connection.answer()
        listen = lambda *_: said.append(1)  # noqa: E731 - it is removed by its name
        event.listen(Engine, "before_cursor_execute", listen)
        try:
            began = time.monotonic()
            for _ in range(300):
                connection.send(predict(key))
                assert connection.answer().status == OK
            took = time.monotonic() - began
        finally:
            event.remove(Engine, "before_cursor_execute", listen)
    assert len(said) < 300 + 25 * took  # three a request would be asked at least


def test_a_key_that_is_revoked_ends_on_connections_that_are_open(service, key: str) -> None:
    made = service.make("ours")
    client = service.client(made.text)
    until(lambda: client.get("/calibrations").status_code == OK)
    with Connection(service.address) as connection:
        connection.send(predict(made.text))
        assert connection.answer().status == OK
        with service.database() as database:
            revoke_key(database, made.id)

        def is_refused() -> bool:
            connection.send(predict(made.text))
            return connection.answer().status == UNAUTHORIZED

        until(is_refused)
    assert client.get("/calibrations").status_code == UNAUTHORIZED
    assert service.client(key).get("/calibrations").status_code == OK


def test_a_service_that_runs_asks_for_keys_once_there_is_one(tmp_path) -> None:
    with keyed_service(tmp_path, first=False) as service:
        client = service.client()
        assert client.get("/calibrations", headers={"Authorization": "Basic x"}).status_code == OK
        with Connection(service.address) as connection:
            connection.send(predict(None))
            assert connection.answer().status == httpx.codes.NOT_FOUND
            made = service.make()

            def is_refused() -> bool:
                connection.send(predict(None))
                return connection.answer().status == UNAUTHORIZED

            until(is_refused)
        assert client.get("/calibrations").status_code == UNAUTHORIZED
        assert service.client(made.text).get("/calibrations").status_code == OK


def test_use_is_noted_roughly(service, key: str) -> None:
    """Within seconds of the first, then every ten minutes at most."""
    [key_id] = {key.split("_")[1]}

    def last_used():
        with service.database() as database, database.engine.connect() as connection:
            statement = "SELECT last_used_at FROM api_key WHERE id = :id"
            return connection.exec_driver_sql(statement, {"id": key_id}).scalar()

    until(last_used)
    first = last_used()
    assert service.client(key).post("/predict", content=BODY).status_code == OK
    time.sleep(1.5)
    assert last_used() == first


def test_predictions_ask_first() -> None:
    """Whoever is refused is counted as that, and nothing is begun."""
    with hot_front() as running, running.connect() as connection:
        head = (
            b"POST /predict HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\nAuthorization: nobody\r\n"
        )
        connection.send(head + b"\r\n")
        answer = connection.answer()
        assert (answer.status, answer.json()["refused"]) == (UNAUTHORIZED, "unauthenticated")
        assert running.hot.n_begun == 0
        assert running.hot.refused == ["unauthenticated"]


def test_refusals_are_counted_by_route_and_reason(service, key: str) -> None:
    for path in PATHS:
        service.client().post(path, content=b"")
    text = service.client(key).get("/metrics").text
    for route in ("/predict", "/calibrate", "/v2/models/{model_name}/infer"):
        [line] = [
            line
            for line in text.splitlines()
            if f'route="{route}"' in line
            and 'status="401"' in line
            and "_bucket" not in line
            and "_sum" not in line
            and "_created" not in line
            and "requests_total" in line
        ]
        assert float(line.rsplit(" ", 1)[1]) >= 1


def test_the_socket_is_free_for_others_meanwhile(service) -> None:
    """Who is refused and does not go away keeps nobody else waiting."""
    with socket.create_connection(service.address) as slow:
        slow.sendall(b"POST /predict HTTP/1.1\r\nHost: h\r\nContent-Length: 99999999\r\n\r\n")
        assert service.client().get("/healthz").status_code == OK

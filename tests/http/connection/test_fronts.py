"""Requests on a connection and their answers."""

import hashlib
import random
import socket
import struct

import pytest
from hot_fronts import hot_front, post, request

from service.http.prediction_exchange import INFER, INFER_VERSION, PREDICT

# How upgraded connections are read is in test_framing_fuzz.
UPGRADE = {"Connection": "Upgrade, HTTP2-Settings", "Upgrade": "h2c"}
CHUNKED = {"Transfer_Encoding": "chunked"}


@pytest.fixture(scope="module")
def front():
    with hot_front() as running:
        yield running


def test_a_connection_is_kept_and_requests_arrive_whole(front) -> None:
    with front.connect() as connection:
        for n in range(3):
            connection.send(post(f"/v2/models/a%20b/infer?later&n={n}", b"x" * n, X_A="1"))
            answer = connection.answer()
            assert answer.status == 200
            request_read = {"route": INFER, "parameters": {"model_name": "a b"}, "bytes": n}
            request_read |= {"query": f"later&n={n}", "headers": ["host", "x-a"]}
            assert answer.json() == request_read
            assert answer.headers["content-type"] == "application/json"
            assert answer.headers["date"].endswith("GMT")
            assert "connection" not in answer.headers


@pytest.mark.parametrize("query", ["", "?later", "?twice", "?big=1000000"])
def test_answers_may_come_at_once_or_later(front, query) -> None:
    with front.connect() as connection:
        for _ in range(2):
            connection.send(post(f"/predict{query}", b"x"))
            answer = connection.answer()
            assert answer.status == 200
            assert len(answer.body) == int(answer.headers["content-length"])


def in_chunks(*pieces: bytes) -> bytes:
    return b"".join(b"%x\r\n%b\r\n" % (len(piece), piece) for piece in (*pieces, b""))


@pytest.mark.parametrize("is_chunked", [False, True])
def test_large_bodies_arrive_whole_in_any_pieces(front, monkeypatch, *, is_chunked: bool) -> None:
    monkeypatch.setattr(front.front, "max_body_bytes", 2 * 2**20)
    rng = random.Random(is_chunked)
    with front.connect() as connection:
        for size in (5000, 2**20, 2**20 + 1, 2 * 2**20):  # the last is as long as it may be
            body = rng.randbytes(size)
            sent = post("/predict?digest", body)
            if is_chunked:
                chunks = in_chunks(body[: size // 3], body[size // 3 :])
                sent = request("POST", "/predict?digest", chunks, **CHUNKED)
            while sent:
                cut = rng.choice((7, 999_999, 2**20) if size > 5000 else (7, 70))
                connection.send(sent[:cut])
                sent = sent[cut:]
            assert connection.answer().json() == hashlib.sha256(body).hexdigest()
        many = in_chunks(*[b"y"] * 2000)
        connection.send(request("POST", "/predict", many, **CHUNKED))
        assert connection.answer().json()["bytes"] == 2000


def test_a_longer_body_that_is_sent_before_the_answer_is_read_is_refused(front) -> None:
    begun = front.hot.n_begun
    answer = front.answer_to(post("/predict", b"x" * 20_000_000))
    assert (answer.status, answer.headers["connection"]) == (413, "close")
    assert answer.json()["refused"] == "too-large"
    assert front.hot.n_begun == begun


def test_answers_stay_in_order(front) -> None:
    targets = ["/predict?later&n=0", "/ordinary/a", "/predict?n=1", "/ordinary/b", "/predict?n=2"]
    with front.connect() as connection:
        connection.send(b"".join(post(target, b"xy") for target in targets))
        found = [connection.answer().json() for _ in targets]
    names = [one.get("query", one.get("ordinary")) for one in found]
    assert names == ["later&n=0", "a", "n=1", "b", "n=2"]
    assert {one["bytes"] for one in found} == {2}


def test_expect_100_continue_is_answered(front) -> None:
    with front.connect() as connection:
        for target, offer in (("/predict", {}), ("/predict", UPGRADE), ("/ordinary/a", UPGRADE)):
            sent = post(target, b"xyz", Expect="100-continue", **offer)
            connection.send(sent[:-3])
            assert connection.answer().status == 100
            connection.send(sent[-3:])
            assert connection.answer().json()["bytes"] == 3


@pytest.mark.parametrize("headers", [{"Connection": "close"}, {}, {"Connection": "keep-alive"}])
def test_close_and_http_1_0_end_the_connection(front, headers) -> None:
    sent = post("/predict", b"x", **headers)
    if headers != {"Connection": "close"}:
        sent = sent.replace(b"HTTP/1.1", b"HTTP/1.0")
    with front.connect() as connection:
        connection.send(sent)
        answer = connection.answer()
        assert (answer.status, answer.headers["connection"]) == (200, "close")
        assert connection.is_ended()


def test_requests_behind_the_last_are_ignored(front) -> None:
    begun = front.hot.n_begun
    for behind in ("/predict?behind", "/ordinary/behind"):
        with front.connect() as connection:
            connection.send(post("/predict?later", Connection="close") + post(behind))
            assert connection.answer().json()["query"] == "later"
            assert connection.is_ended()
    assert front.answer_to(post("/predict")).status == 200
    assert front.hot.n_begun == begun + 3


# As the router of the app would find them; None is not found.
TARGETS = {
    **dict.fromkeys(["/%70redict", "/predict?a=/?b", "/predict#x?a=b"], PREDICT),
    "http://elsewhere/predict?x": PREDICT,
    "/v2/models/%FF/infer": INFER,
    "/v2/models/" + "x" * 1000 + "/infer": INFER,
    "/v2/models/a%252Fb/versions/1/infer": INFER_VERSION,
    **dict.fromkeys(["/predict/", "/v2/models/a%2Fb/infer", "/v2/models/a/ready", "*"]),
    **dict.fromkeys(["/predict" + "x" * 1000, "//predict", "/v2/models//infer"]),
}


def test_only_predictions_bypass_the_app(front) -> None:
    with front.connect() as connection:
        for target, route in TARGETS.items():
            for _ in range(2):
                connection.send(request("POST", target))
                answer = connection.answer()
                assert answer.status == (200 if route else 404), target
                assert answer.json().get("route") == route
        for method in ("GET", "HEAD", "PUT"):
            connection.send(request(method, "/predict"))
            assert connection.answer(to=method).status == 404
        connection.send(request("GET", "/ordinary/x"))
        assert connection.answer().status == 200


@pytest.mark.parametrize("is_reset", [False, True])
def test_a_disconnect_cancels_the_prediction(front, is_reset) -> None:
    with front.connect() as connection:
        connection.send(post("/predict?never", b"x"))
        front.hot.wait_for("never")
        linger = struct.pack("ii", is_reset, 0)
        connection.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
    assert front.hot.left.acquire(timeout=10)


def test_a_disconnect_within_the_body_starts_nothing_and_a_failure_is_a_500(front) -> None:
    begun, taken = front.hot.n_begun, front.front.receiving.taken
    with front.connect() as connection:
        connection.send(post("/predict", b"x" * 5000)[:-1])
    assert front.hot.broken_off.get(timeout=10) == "/predict"
    assert front.answer_to(post("/predict?after")).json()["query"] == "after"
    assert front.hot.n_begun == begun + 1
    assert front.front.receiving.taken == taken
    assert front.answer_to(post("/predict?raise")).status == 500
    assert front.answer_to(post("/predict")).status == 200

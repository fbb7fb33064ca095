"""What a connection may take, whatever it asks for."""

import socket
import struct
import threading
import time
from contextlib import ExitStack, suppress

import pytest
from hot_fronts import MAX_BODY_BYTES, hot_front, post, request

HEADER_BYTES = 4000
RECEIVING_BYTES = 2 * MAX_BODY_BYTES
IMPATIENT = {"header_seconds": 0.3, "window_seconds": 0.3, "stall_seconds": 0.3}


@pytest.fixture(scope="module")
def bounded():
    limits = {"max_header_bytes": HEADER_BYTES, "max_receiving_bytes": RECEIVING_BYTES}
    with hot_front(**limits) as running:
        yield running


@pytest.fixture(scope="module")
def impatient():
    rates = {"min_bytes_per_second": 1000, "upload_bytes_per_second": 100}
    with hot_front(**rates, **IMPATIENT) as running:
        yield running


@pytest.mark.parametrize("target", ["/predict", "/ordinary/a", "/v2/models/a/infer"])
@pytest.mark.parametrize("pieces", [1, 3, 50])
def test_headers_have_room(bounded, target, pieces) -> None:
    room = HEADER_BYTES - len(post(target, X_Long=""))
    sent = post(target, X_Long="x" * room)
    size = -(-len(sent) // pieces)
    with bounded.connect() as connection:
        for _ in range(2):
            for start in range(0, len(sent), size):
                connection.send(sent[start : start + size])
            assert connection.answer().status == 200


@pytest.mark.parametrize(
    "long",
    [
        {"X_Long": "x" * HEADER_BYTES},
        {f"X_{n}": "x" for n in range(HEADER_BYTES // 5)},
    ],
    ids=["one", "many"],
)
@pytest.mark.parametrize("target", ["/predict", "/ordinary/a", "/v2/models/a/infer"])
@pytest.mark.parametrize("is_ended", [True, False])
def test_and_no_more_than_that(bounded, target, long, is_ended) -> None:
    sent = post(target, **long)
    with bounded.connect() as connection:
        connection.send(sent if is_ended else sent[:-4])
        answer = connection.answer()
        assert connection.is_ended()
    assert answer.status == 431
    assert answer.headers["connection"] == "close"
    sentence = f"headers: expected at most {HEADER_BYTES} bytes with the request line"
    if target.startswith("/v2"):
        assert answer.json() == {"error": sentence}
    else:
        assert answer.headers["content-type"] == "application/problem+json"
        found = answer.json()
        assert (found["type"], found["status"]) == ("urn:howsure:problem:headers-too-large", 431)
        assert found["detail"] == sentence


def test_a_long_target_counts(bounded) -> None:
    with bounded.connect() as connection:
        connection.send(b"GET /" + b"x" * (HEADER_BYTES + 1))
        assert connection.answer().status == 431


def test_what_is_refused_waits_for_the_answers_before_it(bounded) -> None:
    sent = post("/predict?later") + post("/ordinary/a") + post("/ordinary/b", X="x" * HEADER_BYTES)
    with bounded.connect() as connection:
        connection.send(sent)
        assert connection.answer().json()["query"] == "later"
        assert connection.answer().json()["ordinary"] == "a"
        assert connection.answer().status == 431
        assert connection.is_ended()


@pytest.mark.parametrize("before", [b"", post("/predict?later"), post("/ordinary/a")])
def test_what_is_no_http_is_said_in_turn(bounded, before) -> None:
    with bounded.connect() as connection:
        connection.send(before + b"nonsense\r\n\r\n")
        if before:
            assert connection.answer().status == 200
        answer = connection.answer()
        assert (answer.status, answer.headers["connection"]) == (400, "close")
        assert answer.json()["type"] == "urn:howsure:problem:malformed-request"
        assert connection.is_ended()


@pytest.mark.parametrize("headers", ["Content-Length: 3", "Transfer-Encoding: identity"])
def test_two_lengths_are_none(bounded, headers) -> None:
    sent = f"POST /predict HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n{headers}\r\n\r\n"
    with bounded.connect() as connection:
        connection.send(sent.encode() + b"0\r\n\r\n")
        assert connection.answer().status == 400


def test_a_trailer_is_no_header_and_has_no_more_room(bounded) -> None:
    sent = request("POST", "/predict", b"3\r\nabc\r\n0\r\nx-t: t\r\n", Transfer_Encoding="chunked")
    with bounded.connect() as connection:
        connection.send(sent + b"\r\n")
        assert connection.answer().json()["headers"] == ["host", "transfer-encoding"]
        connection.send(sent)
        connection.send(b"x-u: " + b"u" * 1_000_000)
        assert connection.answer().status == 431


def test_a_client_that_is_refused_can_say_all_before_it_reads_why(bounded) -> None:
    n_bytes = 20_000_000
    with bounded.connect() as connection:
        connection.send(request("POST", "/predict", Content_Length=str(n_bytes)))
        connection.send(b"x" * n_bytes)
        answer = connection.answer()
    assert (answer.status, answer.headers["connection"]) == (413, "close")


def test_more_than_can_be_received_at_once_is_for_later(bounded) -> None:
    begun = post("/predict?x", b"x" * MAX_BODY_BYTES)
    with bounded.connect() as one, bounded.connect() as two, bounded.connect() as three:
        for connection in (one, two):
            connection.send(begun[:-1])
        while bounded.front.budget.taken < RECEIVING_BYTES:
            time.sleep(0.001)
        three.send(begun[:1000])
        answer = three.answer()
        assert (answer.status, answer.headers["connection"]) == (429, "close")
        assert answer.json()["refused"] == "too-many-requests"
        # What comes at once is never under way.
        with bounded.connect() as small:
            small.send(post("/predict", b"x" * 100))
            assert small.answer().status == 200
        for connection in (one, two):
            connection.send(begun[-1:])
            assert connection.answer().status == 200
    assert bounded.front.budget.taken == 0


def test_what_the_app_receives_counts_as_well(bounded) -> None:
    begun = post("/predict?x", b"x" * MAX_BODY_BYTES)
    with bounded.connect() as one, bounded.connect() as two:
        one.send(post("/ordinary/a") + begun[:-1])
        assert one.answer().status == 200
        while bounded.front.budget.taken < MAX_BODY_BYTES:
            time.sleep(0.001)
        two.send(begun[:-1])
        while bounded.front.budget.taken < RECEIVING_BYTES:
            time.sleep(0.001)
        with bounded.connect() as three:
            three.send(post("/ordinary/a") + begun[:1000])
            assert three.answer().status == 200
            assert three.answer().status == 429
        for connection in (one, two):
            connection.send(begun[-1:])
            assert connection.answer().status == 200
    assert bounded.front.budget.taken == 0


def test_a_client_that_does_not_read_is_sent_no_more_than_a_buffer(bounded) -> None:
    asked = post("/predict?big=300000")
    n_asked = 200
    with bounded.connect() as connection:
        begun = bounded.hot.n_begun
        connection.send(asked * n_asked)
        bounded.hot.wait_for("big=300000")
        with bounded.connect() as other:
            for _ in range(20):
                other.send(post("/predict?later"))
                assert other.answer().status == 200
        assert bounded.hot.n_begun - 20 - begun < 60
        for _ in range(n_asked):
            assert len(connection.answer().body) == 300_000


@pytest.mark.parametrize("sent", [b"", b"\r\n"])
def test_a_connection_that_says_nothing_is_closed(impatient, sent) -> None:
    with impatient.connect() as connection:
        connection.send(sent)
        assert connection.is_ended()


@pytest.mark.parametrize("target", ["/predict", "/ordinary/a"])
@pytest.mark.parametrize("before", [0, 1])
def test_headers_that_never_end_are_too_late(impatient, target, before) -> None:
    with impatient.connect() as connection:
        for _ in range(before):
            connection.send(post("/predict"))
            assert connection.answer().status == 200
        connection.send(post(target)[:-2])
        for _ in range(5):
            connection.send(b"x: y\r\n")
            time.sleep(0.02)
        answer = connection.answer()
        assert (answer.status, answer.headers["connection"]) == (408, "close")
        assert answer.json()["detail"] == "headers: expected within 0.3 seconds"
        assert connection.is_ended()


def trickle(connection, n_bytes, *, per_second):
    """Send so many bytes, ten times a second."""
    for _ in range(10 * n_bytes // per_second):
        connection.send(b"x" * (per_second // 10))
        time.sleep(0.1)


def test_a_hot_body_that_comes_too_slowly_is_too_late() -> None:
    with (
        hot_front(window_seconds=0.3, min_bytes_per_second=1000) as running,
        running.connect() as connection,
    ):
        connection.send(post("/predict", b"x" * 10_000)[:-9000])
        answer = connection.answer()
        assert answer.status == 408
        assert answer.json()["refused"] == "request-timeout"
        assert running.front.budget.taken == 0


def test_one_that_comes_fast_enough_may_take_longer(impatient) -> None:
    with impatient.connect() as connection:
        connection.send(post("/predict", b"x" * 4000)[:-4000])
        trickle(connection, 4000, per_second=4000)
        assert connection.answer().json()["bytes"] == 4000


def test_any_other_body_may_come_more_slowly_but_not_too_slowly(impatient) -> None:
    with impatient.connect() as connection:
        connection.send(post("/ordinary/a", b"x" * 400)[:-400])
        trickle(connection, 400, per_second=400)
        assert connection.answer().json()["bytes"] == 400
    with impatient.connect() as connection:
        connection.send(post("/ordinary/a", b"x" * 400)[:-400])
        answered = threading.Event()
        slow = threading.Thread(target=drip, args=(connection, answered))
        slow.start()
        answer = connection.answer()
        answered.set()
        slow.join()
        assert (answer.status, answer.headers["connection"]) == (408, "close")
        assert answer.json()["type"] == "urn:howsure:problem:request-timeout"


def drip(connection, until) -> None:
    with suppress(OSError):
        while not until.wait(0.05):
            connection.send(b"x")


def test_a_hot_body_has_an_end_at_whatever_rate() -> None:
    limits = {"window_seconds": 10, "min_bytes_per_second": 10, "hot_body_seconds": 0.5}
    with hot_front(**limits) as running, running.connect() as connection:
        connection.send(post("/predict", b"x" * 90_000)[:-90_000])
        answered = threading.Event()
        slow = threading.Thread(target=trickle_until, args=(connection, answered))
        began = time.monotonic()
        slow.start()
        answer = connection.answer()
        answered.set()
        slow.join()
        assert answer.status == 408
        assert time.monotonic() - began > 0.4
        assert running.front.budget.taken == 0


def trickle_until(connection, until) -> None:
    with suppress(OSError):
        while not until.wait(0.02):
            connection.send(b"x" * 100)


@pytest.mark.parametrize("target", ["/predict", "/ordinary/a"])
def test_headers_are_counted(bounded, target) -> None:
    most = 128
    for n_headers, status in ((most, 200), (most + 1, 431)):
        more = {f"X_{n}": "" for n in range(n_headers - 2)}
        with bounded.connect() as connection:
            connection.send(post(target, **more))
            assert connection.answer().status == status


@pytest.mark.parametrize("target", ["/predict", "/ordinary/a"])
@pytest.mark.parametrize("hosts", ["", "Host: localhost\r\nHost: other\r\n"])
def test_a_request_says_once_which_host_it_is_for(bounded, target, hosts) -> None:
    with bounded.connect() as connection:
        connection.send(f"POST {target} HTTP/1.1\r\n{hosts}Content-Length: 0\r\n\r\n".encode())
        assert connection.answer().status == 400
    with bounded.connect() as connection:
        connection.send(b"POST " + target.encode() + b" HTTP/1.0\r\nContent-Length: 0\r\n\r\n")
        assert connection.answer().status == 200


@pytest.mark.parametrize("target", ["/predict", "/ordinary/a"])
def test_what_a_body_is_wrapped_in_is_bounded_however_it_is_spread(bounded, target) -> None:
    """Each chunk is one byte, behind an extension that is within all limits by itself."""
    chunk = b"1;" + b"x" * 1000 + b"\r\ny\r\n"
    sent = request("POST", target, Transfer_Encoding="chunked")
    with bounded.connect() as connection:
        connection.send(sent + b"1\r\ny\r\n" * 2000 + b"0\r\n\r\n")
        assert connection.answer().json()["bytes"] == 2000
        connection.send(sent)
        with suppress(OSError):
            for _ in range(100):
                connection.send(chunk)
        assert connection.answer().status == 431


def test_who_was_answered_has_a_while_to_end_its_body(impatient) -> None:
    """It is not read for ever, at whatever rate it comes."""
    with impatient.connect() as connection:
        connection.send(post("/unread", b"x" * 1_000_000)[:-900_000])
        assert connection.answer().status == 200
        connection.send(b"x" * 900_000 + post("/predict"))
        assert connection.answer().status == 200
        connection.send(request("POST", "/unread", Transfer_Encoding="chunked"))
        assert connection.answer().status == 200
        until = time.monotonic() + 10
        with suppress(OSError):
            while time.monotonic() < until:
                connection.send(b"a\r\n0123456789\r\n" * 1000)
                time.sleep(0.01)
        assert time.monotonic() < until


def test_who_waits_makes_place_for_others() -> None:
    """The longest first, and sooner who has asked nothing; never who is owed an answer."""
    with hot_front(max_connections=4) as running, ExitStack() as opened:
        waiting, asked, late, silent = (opened.enter_context(running.connect()) for _ in range(4))
        waiting.send(post("/predict?released"))
        running.hot.wait_for("released")
        for connection in (asked, late):
            connection.send(post("/predict"))
            assert connection.answer().status == 200
            time.sleep(0.05)  # the loop's clock counts milliseconds
        for gone in (silent, asked, late):
            newer = opened.enter_context(running.connect())
            newer.send(post("/predict?released"))
            running.hot.wait_for("released")
            assert gone.is_ended()
        fifth = opened.enter_context(running.connect())
        answer = fifth.answer()
        assert (answer.status, answer.headers["retry-after"]) == (503, "1")
        assert answer.json()["type"] == "urn:howsure:problem:too-many-connections"
        assert fifth.is_ended()
        running.hot.released.set()
        for connection in (waiting, newer):
            assert connection.answer().status == 200


def test_an_answer_that_is_not_read_is_given_up(impatient) -> None:
    with impatient.connect() as connection:
        connection.send(post("/predict?big=30000000"))
        impatient.hot.wait_for("big=30000000")
        while impatient.server.server_state.connections:
            time.sleep(0.01)
        assert len(connection.file.read(1)) == 1


def test_a_slow_answer_is_no_slow_request(impatient) -> None:
    with impatient.connect() as connection:
        connection.send(post("/predict?released"))
        time.sleep(1)
        impatient.hot.released.set()
        assert connection.answer().status == 200


def test_a_client_that_resets_is_gone(bounded) -> None:
    with bounded.connect() as connection:
        connection.send(post("/predict?never"))
        bounded.hot.wait_for("never")
        connection.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    assert bounded.hot.left.acquire(timeout=10)


@pytest.mark.parametrize("target", ["/predict", "/ordinary/a"])
def test_a_connection_that_is_idle_for_long_is_closed(target) -> None:
    with hot_front(keep_alive_seconds=0.5) as running, running.connect() as connection:
        connection.send(post(target, b"[1]"))
        assert connection.answer().status == 200
        began = time.monotonic()
        assert connection.is_ended()
        assert time.monotonic() - began > 0.4


def test_but_not_one_that_is_used_now_and_then() -> None:
    with hot_front(keep_alive_seconds=0.5) as running, running.connect() as connection:
        until = time.monotonic() + 1.5
        number = 0
        while time.monotonic() < until:
            connection.send(post(("/predict", "/predict", "/ordinary/a")[number % 3], b"[1]"))
            assert connection.answer().status == 200
            number += 1
            time.sleep(0.1)
        began = time.monotonic()
        assert connection.is_ended()
        assert time.monotonic() - began > 0.2


def test_nor_one_whose_answer_takes_longer() -> None:
    with hot_front(keep_alive_seconds=0.1) as running, running.connect() as connection:
        connection.send(post("/predict", b"[1]"))
        assert connection.answer().status == 200
        connection.send(post("/predict?released", b"[1]"))
        time.sleep(0.4)
        running.hot.released.set()
        assert connection.answer().status == 200

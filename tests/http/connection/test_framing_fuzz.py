"""Random bytes in random pieces are read as the same requests as by uvicorn."""

import random

import pytest
from fed_connections import Seen, our_connection, read_requests, uvicorn_connection

UPGRADE = b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: %b\r\n"
PROTOCOLS = [b"h2c", b"websocket", b"TLS/1.0"]
INNER = b"POST /predict HTTP/1.1\r\nHost: h\r\n\r\n"
SCRAPS = [b"\r\n", b"\r\n\r\n", b"a", b"{}", INNER, b"\r", b"\n"]
ODD_HEADERS = [b"X-A: 1\r\n", b"Expect: 100-continue\r\n", b"Transfer-Encoding: chunked\r\n"]
TARGETS = [b"/predict?a", b"/predict?b", b"/v2/models/a/infer", b"/other"]
SEEDS = pytest.mark.parametrize(
    "seeds", [range(300), pytest.param(range(10_000), marks=pytest.mark.slow)], ids=["few", "many"]
)


def random_body(rng: random.Random, size: int) -> bytes:
    scraps = b"".join(rng.choice(SCRAPS) for _ in range(size))
    return scraps[:size].ljust(size, b"x")


def random_message(rng: random.Random, size: int) -> bytes:
    odd = rng.choice(ODD_HEADERS) if rng.random() < 0.1 else b""
    line = b"POST %b HTTP/1.1\r\nHost: h\r\n" % rng.choice(TARGETS)
    return line + odd + b"Content-Length: %d\r\n\r\n" % size + random_body(rng, size)


def random_pieces(rng: random.Random) -> list[bytes]:
    """Return requests with the same length again and again, and what is wrong with some."""
    size = rng.randrange(40)
    pieces = []
    for _ in range(rng.randrange(2, 6)):
        tail = [b"", b"", b"", b"\r\n", b"\r\n\r\n", b"\r", b"G", random_message(rng, size)]
        piece = random_message(rng, size) + rng.choice(tail)
        if rng.random() < 0.15:
            piece = piece[: rng.randrange(1, len(piece) + 1)]
        if rng.random() < 0.1:
            piece = rng.choice([b"\r\n", b"\n", b"x"]) + piece
        pieces += cut(rng, piece) if rng.random() < 0.2 else [piece]
    return pieces


def cut(rng: random.Random, data: bytes) -> list[bytes]:
    places = sorted(rng.randrange(1, len(data) + 1) for _ in range(rng.randrange(1, 6)))
    pieces = [data[a:b] for a, b in zip([0, *places], [*places, len(data)], strict=True)]
    return [piece for piece in pieces if piece]


def in_chunks(rng: random.Random, body: bytes) -> bytes:
    chunks = b"".join(b"%x\r\n%b\r\n" % (len(chunk), chunk) for chunk in cut(rng, body))
    return chunks + b"0\r\n\r\n"


def valid_message(rng: random.Random) -> tuple[bytes, Seen]:
    """Return a request that may offer an upgrade, and how it is to be read."""
    target, body = rng.choice(TARGETS), random_body(rng, rng.randrange(40))
    offer = UPGRADE % rng.choice(PROTOCOLS) if rng.random() < 0.5 else b""
    head = b"POST %b HTTP/1.1\r\nHost: h\r\n%b" % (target, offer)
    if body and rng.random() < 0.4:
        return head + b"Transfer-Encoding: chunked\r\n\r\n" + in_chunks(rng, body), (target, body)
    return head + b"Content-Length: %d\r\n\r\n" % len(body) + body, (target, body)


@SEEDS
def test_random_bytes_are_read_as_uvicorn_reads_them(seeds) -> None:
    for seed in seeds:
        pieces = random_pieces(random.Random(seed))
        requests = read_requests(our_connection, pieces)
        assert requests == read_requests(uvicorn_connection, pieces), (seed, pieces)


@SEEDS
def test_requests_with_upgrades_are_read_as_they_were_written(seeds) -> None:
    for seed in seeds:
        rng = random.Random(seed)
        messages = [valid_message(rng) for _ in range(rng.randrange(1, 6))]
        pieces = cut(rng, b"".join(sent for sent, _ in messages))
        assert read_requests(our_connection, pieces) == [seen for _, seen in messages], seed


def test_a_body_may_begin_as_a_head_ends() -> None:
    """The length of a head that is met again is not guessed from where empty lines stand."""
    head = b"POST /predict?a HTTP/1.1\r\nHost: h\r\nContent-Length: 4\r\n\r\n"
    pieces = [head + b"\r\nab" + tail for tail in (b"", b"\r\n", b"\r\n", b"GE")]
    pieces.append(b"T /other HTTP/1.1\r\nHost: h\r\n\r\n")
    requests = read_requests(our_connection, pieces)
    assert requests == [(b"/predict?a", b"\r\nab")] * 4 + [(b"/other", b"")]

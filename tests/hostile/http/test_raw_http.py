"""Hostile HTTP, as bytes on a connection."""

import gzip
from collections.abc import Callable

import pytest
from hostile_case import CRLF, MEBIBYTE, Attacker, HostileCase, dripped, raw, send_pieces, sized

CHUNKED = b"Transfer-Encoding: chunked"
ENDED = b"2\r\n{}\r\n0\r\n\r\n"
JSON = b"Content-Type: application/json"
FORM = b"Content-Type: multipart/form-data; boundary=b"
GET = b"GET /calibrations HTTP/1.1\r\nHost: h\r\n"
POST = b"POST /predict HTTP/1.1\r\nHost: h\r\n"
BEARER, LONG_KEY = b"Authorization: Bearer ", b"x" * 60_000
# A route that takes no body, and one that is read.
PROMOTE = {"target": b"/calibrations/none/promote"}
MALFORMED, TOO_LONG, TOO_LARGE = "malformed-request", "headers-too-large", "too-large"
SLOW, PACKED, ABSENT = "request-timeout", "unsupported-format", "not-found"
OTHER_METHOD, KEYLESS, INVALID = "method-not-allowed", "unauthenticated", "invalid-input"
STATUS = {"": 200, MALFORMED: 400, KEYLESS: 401, ABSENT: 404, OTHER_METHOD: 405, SLOW: 408}
STATUS |= {TOO_LARGE: 413, PACKED: 415, INVALID: 422, TOO_LONG: 431}


def refused(name: str, code: str, write: Callable[[Attacker], bytes]) -> HostileCase:
    """Return a case of one piece; the status follows from the code."""
    return HostileCase(
        name, lambda attacker: send_pieces(attacker, [write(attacker)]), STATUS[code], code
    )


def with_headers(name: str, code: str, *headers: bytes, **options) -> HostileCase:
    return refused(name, code, lambda attacker: raw(attacker, *headers, **options))


def get(name: str, code: str, target: bytes, *headers: bytes) -> HostileCase:
    return with_headers(name, code, *headers, target=target, method=b"GET")


def by_itself(name: str, code: str, sent: bytes) -> HostileCase:
    return refused(name, code, lambda _: sent)


def chunked(name: str, code: str, body: bytes, **options) -> HostileCase:
    return with_headers(name, code, CHUNKED, body=body, **options)


SMUGGLED = [
    with_headers("length_and_chunks", MALFORMED, sized(2), CHUNKED, body=ENDED),
    with_headers("chunks_and_length", MALFORMED, CHUNKED, sized(2), body=ENDED),
    with_headers("two_lengths", MALFORMED, sized(2), sized(3), body=b"{}x"),
    with_headers("a_list_of_lengths", MALFORMED, b"Content-Length: 2, 2", body=b"{}"),
    with_headers("negative_length", MALFORMED, sized(-1)),
    with_headers("length_in_hex", MALFORMED, b"Content-Length: 0x2", body=b"{}"),
    with_headers("length_beyond_64_bits", MALFORMED, sized(2**70)),
    with_headers("length_of_63_bits", TOO_LARGE, sized(2**63 - 1)),
    with_headers("blank_before_colon", MALFORMED, b"Content-Length : 2", body=b"{}"),
    with_headers("chunks_twice", MALFORMED, CHUNKED, CHUNKED, body=ENDED),
    with_headers("unknown_transfer", MALFORMED, b"Transfer-Encoding: xchunked", body=ENDED),
    with_headers("packed_chunks", MALFORMED, b"Transfer-Encoding: gzip, chunked", body=ENDED),
    with_headers("tab_before_chunked", MALFORMED, b"Transfer-Encoding: \x0bchunked", body=ENDED),
    with_headers("chunks_in_1_0", MALFORMED, CHUNKED, body=ENDED, version=b"HTTP/1.0"),
    with_headers("two_hosts", MALFORMED, b"Host: other.example", sized(0)),
    by_itself("no_host", MALFORMED, b"GET /healthz HTTP/1.1\r\n\r\n"),
]
WRITTEN = [
    by_itself("bare_lf", MALFORMED, b"GET /healthz HTTP/1.1\nHost: h\n\n"),
    with_headers("bare_lf_in_header", MALFORMED, b"X: a\nY: b", sized(0)),
    with_headers("bare_cr_in_header", MALFORMED, b"X: a\rY: b", sized(0)),
    with_headers("folded_header", MALFORMED, b"X: a\r\n b", sized(0)),
    with_headers("nul_in_value", MALFORMED, b"X: a\x00b", sized(0)),
    with_headers("no_colon", MALFORMED, b"Xa", sized(0)),
    with_headers("header_of_1_mb", TOO_LONG, b"X: " + b"x" * MEBIBYTE),
    with_headers("200_headers", TOO_LONG, *(b"x%d: y" % n for n in range(200)), sized(0)),
    with_headers("long_target", TOO_LONG, target=b"/" + b"x" * 100_000),
    with_headers("unknown_version", MALFORMED, sized(0), version=b"HTTP/3.0"),
    by_itself("hello_of_tls", MALFORMED, bytes.fromhex("16030100c8010000c40303") + bytes(190)),
    with_headers("connect", MALFORMED, target=b"example.org:443", method=b"CONNECT"),
    with_headers("unknown_method", MALFORMED, sized(0), method=b"BREW"),
    with_headers("other_bytes_in_target", MALFORMED, target="/calibrations/é".encode()),
    with_headers("blank_in_target", MALFORMED, target=b"/calibrations/a b", method=b"GET"),
]
CHUNKS = [
    chunked("negative_chunk", MALFORMED, b"-2\r\n{}\r\n0\r\n\r\n"),
    chunked("chunk_beyond_64_bits", MALFORMED, b"F" * 17 + b"\r\n{}"),
    chunked("chunk_behind_lf", MALFORMED, b"2\n{}\r\n0\r\n\r\n"),
    chunked("extension_of_20_mb", TOO_LONG, b"2;" + b"x" * 20_000_000),
    chunked("flood_of_trailers", TOO_LONG, ENDED[:-2] + b"x: y\r\n" * 300_000),
    by_itself("key_in_a_trailer", KEYLESS, POST + CHUNKED + b"\r\n\r\n" + ENDED[:-2]),
    chunked("beyond_the_limit", TOO_LARGE, (b"100000\r\n" + bytes(MEBIBYTE) + b"\r\n") * 33),
    chunked("unread_chunks", TOO_LARGE, (b"ffff\r\n" + bytes(2**16 - 1) + b"\r\n") * 20, **PROMOTE),
    with_headers("length_to_a_route_that_takes_none", TOO_LARGE, sized(10**10), **PROMOTE),
]
PATHS = [
    with_headers("asterisk", ABSENT, target=b"*", method=b"OPTIONS"),
    get("line_breaks", ABSENT, b"/healthz%0d%0aX-Evil:%20yes"),
    get("traversal", ABSENT, b"/static/%2e%2e/%2e%2e/settings.py"),
    get("nul", ABSENT, b"/static/swagger-ui.css%00.png"),
    get("long_name_of_a_file", ABSENT, b"/static/" + b"x" * 5000),
    get("no_utf_8", ABSENT, b"/calibrations/%ff%fe"),
    with_headers("trace", OTHER_METHOD, method=b"TRACE"),
    with_headers("preflight", OTHER_METHOD, b"Origin: https://evil.example", method=b"OPTIONS"),
    get("parameter_of_nul", INVALID, b"/report?calibration=%00"),
    get("4_000_parameters", INVALID, b"/report?" + b"calibration=a&" * 4000),
]
KEYS = [
    by_itself("key_of_other_bytes", KEYLESS, GET + BEARER + b"\xff\xfe\r\n\r\n"),
    by_itself("key_of_60_kb", KEYLESS, POST + sized(9) + CRLF + BEARER + LONG_KEY + CRLF * 2),
]


def packed(name: str, encoding: bytes, body: bytes, **route: bytes) -> HostileCase:
    """Nothing of the body is waited for: less is sent than its length says."""
    headers = (b"Content-Encoding: " + encoding, JSON, sized(len(body) + 1))
    return with_headers(name, PACKED, *headers, body=body, **route)


ENCODED = [
    packed("gzip", b"gzip", gzip.compress(bytes(10_000_000))),
    packed("brotli", b"br", b"\x0b\x02\x80{}\x03"),
    packed("gzip_to_a_route_that_takes_none", b"gzip", b"x", **PROMOTE),
]


def slow(
    name: str, head: Callable[[Attacker], bytes], drop: bytes | None, *, skip: int = 0
) -> HostileCase:
    """Stand still behind the head, or go on with a drop at a time."""

    def send(attacker: Attacker):
        if drop is None:
            answer = send_pieces(attacker, [head(attacker)], skip=skip)
        else:
            answer = dripped(attacker, head(attacker), drop)
        # What a client sends on would be taken for the rest of the body.
        assert answer.headers.get("connection") == "close"
        return answer

    return HostileCase(name, send, 408, SLOW)


def upload(attacker: Attacker, *headers: bytes) -> bytes:
    return raw(attacker, FORM, sized(10**6), *headers, target=b"/calibrate")


EXPECT = b"Expect: 100-continue"
SLOWLY = [
    slow("head_that_drips", lambda a: raw(a)[:-2], b"x: y\r\n"),
    slow("body_that_drips", lambda a: raw(a, sized(10**6)), b" "),
    slow("chunks_that_drip", lambda a: raw(a, CHUNKED), b"1\r\n \r\n"),
    slow("upload_that_stands_still", lambda a: upload(a) + b"--b\r\n", None),
    slow("expected_and_never_sent", lambda a: raw(a, sized(99), EXPECT), None, skip=1),
]
CASES = [*SMUGGLED, *WRITTEN, *CHUNKS, *PATHS, *KEYS, *ENCODED, *SLOWLY]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_it_is_refused(hostile, case: HostileCase) -> None:
    response = hostile(case)
    assert not any("evil" in name or "access-control" in name for name in response.headers)
    if case.code in (MALFORMED, TOO_LONG, SLOW):
        assert response.headers.get("connection") == "close"


HARMLESS = [
    # As to a proxy; what stands before the path is nobody's.
    get("absolute_target", "", b"http://evil.example/healthz"),
    # There is no other protocol: the request is one like others.
    get("websocket", "", b"/healthz", b"Connection: Upgrade", b"Upgrade: websocket"),
]


@pytest.mark.parametrize("case", HARMLESS, ids=str)
def test_a_harmless_request_is_answered(hostile, case: HostileCase) -> None:
    hostile(case)

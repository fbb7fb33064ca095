"""Requests as bytes, also such as no client writes."""

import select
from collections.abc import Iterable

import httpx
from hostile_case import Attacker
from hot_fronts import Answer, Connection

CRLF = b"\r\n"
BETWEEN_SECONDS = 0.05


def raw(
    attacker: Attacker,
    *headers: bytes,
    target: bytes = b"/predict",
    method: bytes = b"POST",
    version: bytes = b"HTTP/1.1",
    body: bytes = b"",
) -> bytes:
    """Return a request with the attacker's key and exactly these headers beside `Host`."""
    key = b"Authorization: Bearer " + attacker.key.encode()
    first = b" ".join([method, target, version])
    return CRLF.join([first, b"Host: howsure.example", key, *headers, b"", b""]) + body


def sized(size: int) -> bytes:
    """Return a header Content-Length."""
    return b"Content-Length: %d" % size


def said(attacker: Attacker, pieces: Iterable[bytes], *, skip: int = 0) -> httpx.Response:
    """Send pieces, as far as they are taken; return the answer behind ``skip`` others."""
    with attacker.connect() as connection:
        for piece in pieces:
            try:
                connection.send(piece)
            except OSError:
                break
        for _ in range(skip):
            connection.answer()
        return as_response(connection.answer())


def dripped(attacker: Attacker, begun: bytes, drop: bytes) -> httpx.Response:
    """Send the beginning, and then a drop again and again until there is an answer."""
    with attacker.connect() as connection:
        connection.send(begun)
        while not _is_answered(connection):
            try:
                connection.send(drop)
            except OSError:
                break
        return as_response(connection.answer())


def as_response(answer: Answer) -> httpx.Response:
    return httpx.Response(answer.status, headers=answer.headers, content=answer.body)


def _is_answered(connection: Connection) -> bool:
    readable, _, _ = select.select([connection.socket], [], [], BETWEEN_SECONDS)
    return bool(readable)

"""Bodies read whole, up to a limit."""

from collections.abc import Mapping, Sequence
from urllib.parse import parse_qsl

from fastapi import Request
from starlette.requests import ClientDisconnect
from starlette.types import Message, Receive, Scope

from service.errors import MalformedRequest, TooLarge, UnsupportedFormat
from service.http.connection_limits import IS_SMALL_BODY

IDENTITY = "identity"


def is_plain(content_encoding: bytes | None, known: Sequence[str] = (IDENTITY,)) -> bool:
    """Tell whether a body is as it is: a header ``Content-Encoding`` says nothing else."""
    return (content_encoding or b"identity").decode("latin-1").strip().lower() in known


def encoding_refused(known: Sequence[str] = (IDENTITY,)) -> UnsupportedFormat:
    """Return the failure of a body that is encoded otherwise."""
    return UnsupportedFormat.at(
        "Content-Encoding",
        f"expected {', '.join(known)}; identity is the body as it is, not compressed",
    )


async def read_body(request: Request, *, max_bytes: int) -> bytes:
    """Return the body as it came; what arrives is counted, whatever the headers claim.

    Raises
    ------
    TooLarge
        If the body is longer than ``max_bytes``.
    """
    too_large = TooLarge.at("body", f"expected at most {max_bytes} bytes")
    claimed = request.headers.get("content-length", "0")
    if claimed.isdigit() and int(claimed) > max_bytes:
        raise too_large
    parts: list[bytes] = []
    size = 0
    async for chunk in request.stream():
        size += len(chunk)
        if size > max_bytes:
            raise too_large
        parts.append(chunk)
    return b"".join(parts)


def has_body(headers: Mapping[bytes, bytes]) -> bool:
    """Tell whether a head says that a body follows."""
    return b"transfer-encoding" in headers or headers.get(b"content-length", b"0") != b"0"


async def received(
    scope: Scope, receive: Receive, headers: Mapping[bytes, bytes], *, most: int
) -> Receive:
    """Return what yields the whole body, and then what comes after it.

    Raises
    ------
    TooLarge
        If it is longer than ``most``, by what is claimed or by what comes.
    ClientDisconnect
        If the client leaves before its end, or the connection refuses what comes too slowly.
    """
    claimed = headers.get(b"content-length", b"0")
    if not claimed.isdigit() or int(claimed) > most:
        raise _too_large(most)
    scope.setdefault("state", {})[IS_SMALL_BODY] = True
    whole = await _whole(receive, most)
    left: list[Message] = [{"type": "http.request", "body": whole, "more_body": False}]

    async def again() -> Message:
        return left.pop() if left else await receive()

    return again


async def _whole(receive: Receive, most: int) -> bytes:
    whole = bytearray()
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientDisconnect
        whole += message.get("body", b"")
        if len(whole) > most:
            raise _too_large(most)
        if not message.get("more_body", False):
            return bytes(whole)


def _too_large(most: int) -> TooLarge:
    return TooLarge.at("body", f"expected at most {most} bytes")


MOST_BYTES = 8192


async def form_fields(request: Request, *, most_bytes: int = MOST_BYTES) -> dict[str, str]:
    """Return the fields by name, of those sent twice the last.

    Raises
    ------
    TooLarge, MalformedRequest
        If it is longer than its longest, or cannot be read.
    """
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > most_bytes:
            raise TooLarge.at("body", f"expected a form of at most {most_bytes} bytes")
    try:
        pairs = parse_qsl(body.decode("ascii"), keep_blank_values=True, max_num_fields=20)
    except ValueError as error:
        raise MalformedRequest.at("body", "expected application/x-www-form-urlencoded") from error
    return dict(pairs)

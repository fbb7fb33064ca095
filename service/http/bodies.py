"""Bodies of requests that are read whole, up to a limit, and of responses that are replaced."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any
from urllib.parse import parse_qsl

from fastapi import Request
from starlette.types import Message, Receive, Scope, Send

from service.errors import MalformedRequest, TooLarge, UnsupportedFormat
from service.http.connection_limits import IS_SMALL_BODY

IDENTITY = "identity"
# Key in an ASGI scope: what its body holds of the bytes in transfer, until the response is sent.
BODY_HOLD = "howsure.body_hold"


def is_plain(content_encoding: bytes | None, known: Sequence[str] = (IDENTITY,)) -> bool:
    """Tell whether ``Content-Encoding`` is missing or names one of these encodings."""
    return (content_encoding or b"identity").decode("latin-1").strip().lower() in known


def encoding_refused(known: Sequence[str] = (IDENTITY,)) -> UnsupportedFormat:
    """Return the error for a body with another encoding."""
    return UnsupportedFormat.at(
        "Content-Encoding",
        f"expected {', '.join(known)}; identity is the body as it is, not compressed",
    )


def json_body(schema: str, **rules: object) -> dict[str, Any]:
    """Return the description of a JSON body by a schema that the OpenAPI document names."""
    found = {"$ref": f"#/components/schemas/{schema}", **rules}
    return {"required": True, "content": {"application/json": {"schema": found}}}


async def read_body(request: Request, *, max_bytes: int) -> bytes:
    """Return the body; both the declared length and the received bytes are checked.

    Raises
    ------
    TooLarge
        If the body is longer than ``max_bytes``.
    ShareTaken, TooManyRequests
        If too many bytes of bodies are in transfer.
    ClientDisconnect
        If the client leaves before its end, or the connection refuses a slow body.
    """
    too_large = TooLarge.at("body", f"expected at most {max_bytes} bytes")
    declared = request.headers.get("content-length", "0")
    if not declared.isdigit() or int(declared) > max_bytes:
        raise too_large
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > max_bytes:
            raise too_large
        request.scope[BODY_HOLD].change_to(len(body))
    return bytes(body)


def has_body(headers: Mapping[bytes, bytes]) -> bool:
    """Tell whether a body follows the headers."""
    return b"transfer-encoding" in headers or headers.get(b"content-length", b"0") != b"0"


async def received(scope: Scope, receive: Receive, *, most: int) -> Receive:
    """Receive the whole body; return a function that yields it and then later events.

    Raises
    ------
    TooLarge, ClientDisconnect
        As `read_body`.
    """
    scope.setdefault("state", {})[IS_SMALL_BODY] = True
    whole = await read_body(Request(scope, receive), max_bytes=most)
    return replayed(whole, receive)


def replayed(body: bytes, receive: Receive) -> Receive:
    """Return a function that yields the body first, then later events, such as a disconnect."""
    left: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def again() -> Message:
        return left.pop() if left else await receive()

    return again


MOST_BYTES = 8192


async def form_fields(request: Request, *, most_bytes: int = MOST_BYTES) -> dict[str, str]:
    """Return the fields by name; of a repeated field the last value.

    Raises
    ------
    TooLarge, MalformedRequest
        If the form is longer than ``most_bytes``, or cannot be read.
    """
    body = await read_body(request, max_bytes=most_bytes)
    try:
        pairs = parse_qsl(body.decode("ascii"), keep_blank_values=True, max_num_fields=20)
    except ValueError as error:
        raise MalformedRequest.at("body", "expected application/x-www-form-urlencoded") from error
    return dict(pairs)


def held_back(
    send: Send,
    is_held: Callable[[Message], bool],
    replace: Callable[[Message, bytes], Awaitable[None]],
) -> Send:
    """Return how to send a response: if ``is_held`` tells so of its head, ``replace`` sends it.

    ``replace`` gets the head and the whole body.
    """
    head: Message | None = None
    body = bytearray()

    async def send_part(message: Message) -> None:
        nonlocal head
        if message["type"] == "http.response.start" and is_held(message):
            head = message
        elif head is None:
            await send(message)
        else:
            body.extend(message.get("body", b""))
            if not message.get("more_body", False):
                await replace(head, bytes(body))

    return send_part

"""Forms do what the API does, by asking it: the same checks, limits and rows of the audit table."""

import json
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

from starlette.requests import Request
from starlette.types import Message, Receive

_LEFT_OUT = (b"cookie", b"accept", b"prefer", b"idempotency-key")
_OF_BODY = (b"content-type", b"content-length", b"transfer-encoding")
# Of the route that hands on, not of that which is asked.
_OF_ROUTE = ("route", "endpoint", "path_params", "router")
_MULTIPLE_CHOICES = 300


@dataclass(frozen=True)
class Answer:
    """What a route of the API said."""

    status: int
    body: Any

    @property
    def is_done(self) -> bool:
        """Whether it did what was asked."""
        return self.status < _MULTIPLE_CHOICES


@dataclass(frozen=True)
class Sent:
    """What is sent in the place of a form."""

    content_type: str
    body: bytes


async def handed_on(
    request: Request, path: str, *, sent: Sent | None = None, query: str = ""
) -> Answer:
    """Have a route of the API take this request, whoever asks being known already.

    ``sent`` is what a form was made into, which is taken by POST in the place of the request's own
    body.
    """
    kept = [pair for pair in request.scope["headers"] if pair[0] not in _LEFT_OUT]
    scope = {name: value for name, value in request.scope.items() if name not in _OF_ROUTE}
    receive = request.receive
    if sent is not None:
        kept = [pair for pair in kept if pair[0] not in _OF_BODY]
        kept += [(b"content-type", sent.content_type.encode())]
        kept += [(b"content-length", b"%d" % len(sent.body))]
        receive = _first(sent.body, receive)
        scope["method"] = "POST"
    scope |= {
        "path": unquote(path),
        "raw_path": path.encode(),
        "query_string": query.encode(),
        "headers": [*kept, (b"accept", b"application/json")],
    }
    status = 500
    body = bytearray()

    async def take(message: Message) -> None:
        nonlocal status
        if message["type"] == "http.response.start":
            status = message["status"]
        body.extend(message.get("body", b""))

    await request.app.router(scope, receive, take)
    return Answer(status, json.loads(body) if body else None)


def _first(body: bytes, receive: Receive) -> Receive:
    """Return what yields a body, and then what is left of the request: that its client leaves."""
    left: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def following() -> Message:
        return left.pop() if left else await receive()

    return following

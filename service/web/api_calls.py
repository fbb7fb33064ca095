"""Calls of API routes by forms, with the same checks, limits and audit entries."""

import json
from dataclasses import dataclass
from typing import Any, Literal
from urllib.parse import unquote

from starlette.requests import Request
from starlette.types import Message

from service.http.bodies import replayed

_LEFT_OUT = (b"cookie", b"accept", b"prefer", b"idempotency-key")
_OF_BODY = (b"content-type", b"content-length", b"transfer-encoding")
# Values of the route of the form.
_OF_ROUTE = ("route", "endpoint", "path_params", "router")
_MULTIPLE_CHOICES = 300


@dataclass(frozen=True)
class Answer:
    """The response of a route of the API."""

    status: int
    body: Any

    @property
    def is_done(self) -> bool:
        """Whether the request succeeded."""
        return self.status < _MULTIPLE_CHOICES


@dataclass(frozen=True)
class Sent:
    """A request body that replaces the form."""

    content_type: str
    body: bytes


async def handed_on(
    request: Request,
    path: str,
    *,
    sent: Sent | None = None,
    query: str = "",
    method: Literal["POST", "DELETE"] = "POST",
) -> Answer:
    """Pass this request, which is authenticated already, to a route of the API.

    ``sent`` replaces the body of the request.
    """
    kept = [pair for pair in request.scope["headers"] if pair[0] not in _LEFT_OUT]
    scope = {name: value for name, value in request.scope.items() if name not in _OF_ROUTE}
    receive = request.receive
    if sent is not None:
        kept = [pair for pair in kept if pair[0] not in _OF_BODY]
        kept += [(b"content-type", sent.content_type.encode())]
        kept += [(b"content-length", b"%d" % len(sent.body))]
        receive = replayed(sent.body, receive)
    scope |= {
        "method": method,
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

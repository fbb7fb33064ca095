"""Forms do what the API does, by asking it: the same checks, limits and rows of the audit table."""

import json
from dataclasses import dataclass
from typing import Any

from starlette.requests import Request
from starlette.types import Message

_LEFT_OUT = (b"cookie", b"accept", b"prefer", b"idempotency-key")
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


async def handed_on(request: Request, path: str) -> Answer:
    """Have a route of the API take this request, whoever asks being known already."""
    kept = [pair for pair in request.scope["headers"] if pair[0] not in _LEFT_OUT]
    scope = {name: value for name, value in request.scope.items() if name not in _OF_ROUTE}
    scope |= {
        "path": path,
        "raw_path": path.encode(),
        "query_string": b"",
        "headers": [*kept, (b"accept", b"application/json")],
    }
    status = 500
    body = bytearray()

    async def take(message: Message) -> None:
        nonlocal status
        if message["type"] == "http.response.start":
            status = message["status"]
        body.extend(message.get("body", b""))

    await request.app.router(scope, request.receive, take)
    return Answer(status, json.loads(body) if body else None)

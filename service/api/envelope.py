"""What every answer of the app comes in, its failures too: plain ASGI, outside all else."""

import structlog
from fastapi import FastAPI
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from service.api.request_id import HEADER, REQUEST_ID, accepted_id, new_id
from service.api.standing_headers import completed


class Envelope:
    """An ASGI app that names each request, and completes the headers of its answer."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass one request on."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        sent = [value for name, value in scope["headers"] if name == HEADER]
        request_id = (accepted_id(sent[0]) if len(sent) == 1 else b"") or new_id()
        scope.setdefault("state", {})[REQUEST_ID] = request_id.decode()
        # Each request is a task of its own: lines that are written for it say its name.
        structlog.contextvars.bind_contextvars(request_id=request_id.decode())

        async def complete(message: Message) -> None:
            if message["type"] == "http.response.start":
                given = [pair for pair in message.get("headers", ()) if pair[0] != HEADER]
                message = {**message, "headers": [*completed(given), (HEADER, request_id)]}
            await send(message)

        await self._app(scope, receive, complete)


def install(app: FastAPI) -> None:
    """Put it around ``app``, outside what answers its unexpected failures as well."""
    build = app.build_middleware_stack
    app.build_middleware_stack = lambda: Envelope(build())  # type: ignore[method-assign]  # no middleware goes there
